"""The loss of MPO."""

from tfrl.losses.mpo_module import MPO as MPO
