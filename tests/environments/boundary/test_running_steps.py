"""Which environments are in the middle of a step, as another thread sees it."""

import gc
import threading

import gymnasium
import numpy as np
import pytest

from tfrl import testing
from tfrl.environments import batched_py_environment, suite_gym, tf_py_environment
from tfrl.environments.boundary import running_steps


class Waiting(testing.CountingEnvironment):
    """A step waits until it is let go."""

    def __init__(self):
        super().__init__()
        self.arrived, self.go = threading.Event(), threading.Event()

    def _step(self, action):
        self.arrived.set()
        self.go.wait(30)
        return super()._step(action)


@pytest.fixture(autouse=True)
def no_other_environments():
    gc.collect()
    assert running_steps.describe() is None


def test_a_running_step_is_described_until_it_returns():
    waiting = Waiting()
    environment = tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment([waiting])
    )
    environment.reset()
    thread = threading.Thread(target=environment.step, args=(np.array([0], np.int32),))
    thread.start()
    waiting.arrived.wait(30)
    described = running_steps.describe()
    waiting.go.set()
    thread.join()
    assert described == "step 2 of BatchedPyEnvironment of Waiting"
    assert running_steps.describe() is None


def test_an_environment_has_the_name_it_is_registered_by():
    class Hole(gymnasium.Wrapper):
        def reset(self, **kwargs):
            described.append(running_steps.describe())
            return super().reset(**kwargs)

    described = []
    environment = tf_py_environment.TFPyEnvironment(
        suite_gym.load("CartPole-v1", gym_env_wrappers=[Hole])
    )
    environment.reset()
    assert described == ["step 1 of CartPole-v1"]


class Stepping:
    def __init__(self, step):
        self.step = step

    def running_step(self):
        return self.step


@pytest.mark.slow
def test_only_what_lives_and_steps_is_described():
    held = [Stepping("step 1 of A"), Stepping(None), Stepping("step 3 of B")]
    for stepping in (*held, Stepping("step 4 of C")):
        running_steps.register(stepping)
    del stepping
    gc.collect()
    assert set(running_steps.describe().split(" and ")) == {
        "step 1 of A",
        "step 3 of B",
    }
