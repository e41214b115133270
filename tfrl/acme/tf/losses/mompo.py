"""The loss of MPO with several objectives."""

from tfrl.losses.mpo_module import KLConstraint as KLConstraint
from tfrl.losses.mpo_module import MultiObjectiveMPO as MultiObjectiveMPO
