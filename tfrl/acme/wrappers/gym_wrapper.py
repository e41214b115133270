"""Environments of Gymnasium."""

from tfrl.wrappers.gym_wrapper import AtariGymWrapper as AtariGymWrapper
from tfrl.wrappers.gym_wrapper import GymAtariAdapter as GymAtariAdapter
from tfrl.wrappers.gym_wrapper import GymWrapper as GymWrapper
