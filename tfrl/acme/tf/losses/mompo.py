"""The loss of MPO with several objectives."""

from tfrl import absent
from tfrl.losses.mpo_module import KLConstraint as KLConstraint
from tfrl.losses.mpo_module import MultiObjectiveMPO as MultiObjectiveMPO

__getattr__, __path__ = absent.explained(__name__)
