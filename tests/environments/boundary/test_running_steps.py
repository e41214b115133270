"""Which environments are in the middle of a step, as another thread sees it."""

import gc
import threading
import types

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


class Watched:
    """Says which of its steps is running, and when it was asked again."""

    def __init__(self):
        self._step = None
        self._asked = threading.Semaphore(0)

    def running_step(self):
        self._asked.release()
        return self._step

    def runs(self, step):
        """Waits until the watcher has seen that `step` is running."""
        self._step = step
        while self._asked.acquire(blocking=False):
            pass
        for _ in range(3):  # It may be within a look at the step before.
            assert self._asked.acquire(timeout=60.0)


def test_a_step_that_takes_long_is_named_while_it_lasts_and_then_again(monkeypatch):
    clock = types.SimpleNamespace(now=0.0)
    fake = types.SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(running_steps, "time", fake)
    environment, lines = Watched(), []
    running_steps.register(environment)
    with running_steps.naming_slow(lines.append, seconds=0.1):
        for step in range(5):  # Short steps, longer than the limit together.
            environment.runs(f"step {step} of Quick")
            clock.now += 0.09
        environment.runs("step 5 of Slow")
        assert not lines
        for now in (0.1, 0.15, 0.2):
            clock.now = 0.45 + now
            environment.runs("step 5 of Slow")
    assert lines == [
        "step 5 of Slow has taken 0.1 seconds so far.",
        "step 5 of Slow has taken 0.2 seconds so far.",
    ]
    assert not any(thread.name == "slow steps" for thread in threading.enumerate())
