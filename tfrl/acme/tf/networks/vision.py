"""Torsos for images."""

from tfrl.networks.vision import DeepAtariTorso as DeepAtariTorso
from tfrl.networks.vision import ResNetTorso as ResNetTorso
