"""Adders around other adders."""

from tfrl.adders.wrappers import ForkingAdder as ForkingAdder
from tfrl.adders.wrappers import IgnoreExtrasAdder as IgnoreExtrasAdder
