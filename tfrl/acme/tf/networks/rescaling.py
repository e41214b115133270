"""Layers that bring actions into the bounds of their spec."""

from tfrl.networks.rescaling import ClipToSpec as ClipToSpec
from tfrl.networks.rescaling import RescaleToSpec as RescaleToSpec
from tfrl.networks.rescaling import TanhToSpec as TanhToSpec
