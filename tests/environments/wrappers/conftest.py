"""`ScriptedEnv`, an environment whose every step is known, for tests of wrappers."""

import numpy as np
import pytest

from tfrl.environments import batched_py_environment, py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class ScriptedEnv(py_environment.PyEnvironment):
    """Remembers its actions; observes its steps, and rewards 1, 2, 3, ...

    It ends after `length` steps, with a termination or a truncation; the discount of
    every other step is 0.5.
    """

    def __init__(
        self,
        action_spec=None,
        length=3,
        handle_auto_reset=True,
        truncates=False,
        observe=None,
        observation_spec=None,
    ):
        super().__init__(handle_auto_reset)
        self._action_spec = (
            array_spec.BoundedArraySpec((), np.int32, 0, 1, name="action")
            if action_spec is None
            else action_spec
        )
        self._observation_spec = observation_spec or array_spec.ArraySpec(
            (), np.float32
        )
        self._observe = observe or np.float32
        self._length = length
        self._truncates = truncates
        self.count = 0
        self.actions = []

    def observation_spec(self):
        return self._observation_spec

    def action_spec(self):
        return self._action_spec

    def get_state(self):
        return self.count

    def set_state(self, state):
        self.count = state

    def get_info(self):
        return {"count": self.count}

    def _reset(self):
        self.count = 0
        return ts.restart(self._observe(0))

    def _step(self, action):
        self.actions.append(action)
        self.count += 1
        observation, reward = self._observe(self.count), float(self.count)
        if self.count < self._length:
            return ts.transition(observation, reward, 0.5)
        if self._truncates:
            return ts.truncation(observation, reward, 0.5)
        return ts.termination(observation, reward)


@pytest.fixture
def scripted():
    """The class `ScriptedEnv`."""
    return ScriptedEnv


@pytest.fixture
def batch_of():
    """Makes one batched environment of its members."""

    def batch(*members):
        return batched_py_environment.BatchedPyEnvironment(
            members, multithreading=False
        )

    return batch
