"""Draws native environments with Gymnasium's renderers."""

from __future__ import annotations

from typing import Any

import numpy as np


class GymnasiumRenderer:
    """Draws a state with the renderer of a Gymnasium environment.

    The first call imports Gymnasium and pygame and makes the environment.
    """

    def __init__(self, environment_name: str):
        """Stores the name; makes nothing yet.

        Args:
          environment_name: The registered name, such as "CartPole-v1". The states to
            draw must have the layout of that environment's attribute `state`.
        """
        self._environment_name = environment_name
        self._gym_env: Any = None

    def __call__(self, state: np.ndarray) -> np.ndarray:
        """Returns the picture of one state, uint8 `[height, width, 3]`."""
        if self._gym_env is None:
            from tfrl.environments import suite_gym

            environment: Any = suite_gym.load(self._environment_name)
            self._gym_env = environment.gym.unwrapped
            self._gym_env.reset(seed=0)
        self._gym_env.state = np.asarray(state, np.float64)
        return self._gym_env.render()
