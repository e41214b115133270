"""An environment that plays written episodes, for the tests of wrappers."""

import dm_env
import numpy as np
from dm_env import specs


class Scripted(dm_env.Environment):
    """Plays one episode again and again, and records the actions.

    Args:
      rewards: The reward of each step after the FIRST.
      discounts: Their discounts; 1 but for 0 at the end by default.
      observations: The observations, one more; the number of the step by default.
      action_spec: The spec of the actions; one of two by default.
      observation_spec: The spec of the observations; a float64 scalar by default.
    """

    def __init__(
        self,
        rewards,
        discounts=None,
        observations=None,
        action_spec=None,
        observation_spec=None,
    ):
        self._rewards = rewards
        self._discounts = discounts or [1.0] * (len(rewards) - 1) + [0.0]
        self._observations = observations or [
            np.float64(step) for step in range(len(rewards) + 1)
        ]
        self._action_spec = action_spec or specs.DiscreteArray(2)
        self._observation_spec = observation_spec or specs.Array((), np.float64)
        self.actions = []
        self.num_resets = 0
        self.closed = False
        self._step = len(rewards)

    def reset(self):
        self.num_resets += 1
        self._step = 0
        return dm_env.restart(self._observations[0])

    def step(self, action):
        if self._step == len(self._rewards):
            return self.reset()
        self.actions.append(action)
        reward, discount = self._rewards[self._step], self._discounts[self._step]
        self._step += 1
        is_last = self._step == len(self._rewards)
        return dm_env.TimeStep(
            dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
            reward,
            discount,
            self._observations[self._step],
        )

    def observation_spec(self):
        return self._observation_spec

    def action_spec(self):
        return self._action_spec

    def close(self):
        self.closed = True


def play(environment, num_steps, action=1):
    """Returns the time steps of a reset and of `num_steps` steps."""
    return [environment.reset()] + [environment.step(action) for _ in range(num_steps)]


def step_types(timesteps):
    """Returns the step types as a word, F, M or L for each."""
    return "".join("FML"[timestep.step_type] for timestep in timesteps)
