"""An environment of a user, which fails at its 60th step."""

import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    """Its simulator lacks a name."""

    observation_space = gymnasium.spaces.Box(-1, 1, [2], np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    _steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._steps += 1
        if self._steps == 60:
            return {}["qpos"]
        return np.zeros(2, np.float32), 1.0, False, self._steps % 10 == 0, {}


gymnasium.register("Broken-v0", Broken)
