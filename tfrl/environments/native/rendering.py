"""Pictures of native environments, by Gymnasium's own renderers."""

from __future__ import annotations

from typing import Any

import numpy as np


class GymnasiumRenderer:
    """Draws a state as Gymnasium's environment of that name would.

    Gymnasium and pygame are imported, and the environment is made, when it is first
    called.
    """

    def __init__(self, environment_name: str):
        """Remembers the name, such as "CartPole-v1".

        The environment's attribute `state` must be laid out as the states to draw.
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
