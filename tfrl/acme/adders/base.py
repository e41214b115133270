"""`Adder`, the base class of adders."""

from tfrl.adders.base import Adder as Adder
