"""An environment without an end, and one with a time limit."""

import gymnasium
import numpy as np


class Endless(gymnasium.Env):
    """Its episodes do not end."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}


def limited(steps=70):
    return gymnasium.wrappers.TimeLimit(Endless(), steps)
