"""TF-Agents' name for `GymnasiumWrapper`: `gym_wrapper.GymWrapper`."""

from __future__ import annotations

from tfrl.environments.gymnasium_wrapper import GymnasiumWrapper as GymWrapper
from tfrl.specs.gym_spaces import spec_from_gym_space

__all__ = ["GymWrapper", "spec_from_gym_space"]
