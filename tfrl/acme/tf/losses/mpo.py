"""The loss of MPO."""

from tfrl import absent
from tfrl.losses.mpo_module import MPO as MPO

__getattr__, __path__ = absent.explained(__name__)
