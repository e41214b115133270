"""CartPole without velocities; to import this module registers it with Gymnasium.

The names are "MaskedCartPole-v0", with at most 200 steps, and "MaskedCartPole-v1", with
at most 500.
"""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium.envs import classic_control

_SHOWN = [0, 2]


class MaskedCartPoleEnv(gymnasium.ObservationWrapper):
    """CartPole that shows the cart's position and the pole's angle alone."""

    # Gymnasium 1.3 reads it from the class.
    metadata = classic_control.CartPoleEnv.metadata

    def __init__(self, render_mode: str | None = None) -> None:
        """Creates the environment.

        Args:
          render_mode: As for Gymnasium's CartPole.
        """
        cart_pole = gymnasium.make("CartPole-v1", render_mode=render_mode)
        super().__init__(cart_pole.unwrapped)
        space = self.env.observation_space
        assert isinstance(space, gymnasium.spaces.Box)
        self.observation_space = gymnasium.spaces.Box(
            space.low[_SHOWN], space.high[_SHOWN], dtype=np.float32
        )

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Returns the position and the angle, `[2]`."""
        return observation[_SHOWN]


for _version, _steps in (("v0", 200), ("v1", 500)):
    gymnasium.register(
        f"MaskedCartPole-{_version}",
        f"{__name__}:MaskedCartPoleEnv",
        max_episode_steps=_steps,
    )
