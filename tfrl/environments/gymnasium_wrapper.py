"""The name of `GymnasiumWrapper` in TF-Agents' last commit."""

from __future__ import annotations

from tfrl.environments.gymnasium.wrapper import GymnasiumWrapper
from tfrl.specs.gym_spaces import spec_from_gym_space

__all__ = ["GymnasiumWrapper", "spec_from_gym_space"]
