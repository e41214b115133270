"""Each check of `PyEnvironmentConformance` finds the fault it is for."""

import copy

import numpy as np
import pytest

from tests.environments.even import Even
from tfrl import testing
from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class Walk(py_environment.PyEnvironment):
    """A random walk of five steps: what a conforming environment looks like."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._rng = np.random.RandomState()
        self._place, self._steps = 0.0, 0

    def observation_spec(self):
        return array_spec.BoundedArraySpec((1,), np.float32, -9, 9, "place")

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int64, 0, 1, "action")

    def seed(self, seed):
        self._rng = np.random.RandomState(seed)

    def get_state(self):
        return self._rng.get_state(), self._place, self._steps

    def set_state(self, state):
        rng, self._place, self._steps = state
        self._rng.set_state(rng)

    def _observe(self):
        return np.array([self._place], np.float32)

    def _reset(self):
        self._place, self._steps = 0.0, 0
        return ts.restart(self._observe())

    def _step(self, action):
        self._steps += 1
        self._place += float(action) - self._rng.uniform()
        if self._steps == 5:
            return ts.termination(self._observe(), reward=self._place)
        return ts.transition(self._observe(), reward=self._place)


class WithTensorSpec(Walk):
    def observation_spec(self):
        return {"place": np.float32}


class WithoutSize(Walk):
    batched = True
    batch_size = None


class SizeWithoutBatch(Walk):
    batch_size = 3


class StartsInTheMiddle(Walk):
    def _reset(self):
        return ts.transition(super()._reset().observation, reward=0.0)


class RewardsTheStart(Walk):
    def _reset(self):
        return super()._reset()._replace(reward=np.float32(1))


class WrongDtype(Walk):
    def _observe(self):
        return np.array([self._place])


class WrongShape(Walk):
    def _observe(self):
        return np.array(self._place, np.float32)


class OutOfBounds(Walk):
    def _observe(self):
        return np.array([self._place + 9.5], np.float32)


class NotANumber(Walk):
    def observation_spec(self):
        return array_spec.ArraySpec((1,), np.float32)

    def _observe(self):
        return np.array([np.nan if self._steps == 3 else 0.0], np.float32)


class InfiniteReward(Walk):
    def _step(self, action):
        return super()._step(action)._replace(reward=np.float32(np.inf))


class NeverEnds(Walk):
    """Starts again without a LAST step."""

    def _step(self, action):
        time_step = super()._step(action)
        return self._reset() if time_step.is_last() else time_step


class GoesOnAfterTheEnd(Walk):
    def __init__(self):
        super().__init__(handle_auto_reset=False)


class ForgetsTheTimeStep(Walk):
    def current_time_step(self):
        return ts.restart(self._observe())


class ReusesItsArray(Walk):
    array = np.zeros(1, np.float32)

    def _observe(self):
        self.array[0] = self._place
        return self.array


class ChangesTheAction(Walk):
    def action_spec(self):
        return array_spec.BoundedArraySpec((1,), np.float32, -1, 1, "action")

    def _step(self, action):
        action *= 0.5
        return super()._step(action[0])


class ResetsAtTheMaximum(Walk):
    def _step(self, action):
        return self._reset() if action == 1 else super()._step(action)


class IgnoresItsSeed(Walk):
    def seed(self, seed):
        pass


class ForgetsItsRandomNumbers(Walk):
    def get_state(self):
        return None, self._place, self._steps

    def set_state(self, state):
        _, self._place, self._steps = state


class ReturnsItsGenerator(Walk):
    def get_state(self):
        return copy.deepcopy(self._rng), self._place, self._steps

    def set_state(self, state):
        rng, self._place, self._steps = state
        self._rng = copy.deepcopy(rng)


class ClosesOnce(Walk):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


FAULTS = [
    (WithTensorSpec, "test_specs_are_nests_of_array_specs", "expected an ArraySpec"),
    (WithoutSize, "test_a_batched_environment_says_its_batch_size", "batch_size"),
    (SizeWithoutBatch, "test_a_batched_environment_says_its_batch_size", "batched"),
    (StartsInTheMiddle, "test_reset_starts_an_episode", "step_type"),
    (RewardsTheStart, "test_reset_starts_an_episode", "reward"),
    (StartsInTheMiddle, "test_a_step_before_any_reset_starts_an_episode", "before any"),
    (WrongDtype, "test_time_steps_are_what_the_specs_say", "observation.*float64"),
    (WrongShape, "test_time_steps_are_what_the_specs_say", r"observation.*shape \(\)"),
    (OutOfBounds, "test_time_steps_are_what_the_specs_say", "bounds of its spec"),
    (NotANumber, "test_numbers_are_finite", "time step 3/observation: got NaN"),
    (InfiniteReward, "test_numbers_are_finite", "reward.*finite"),
    (NeverEnds, "test_steps_follow_in_order", "the step before was not LAST"),
    (GoesOnAfterTheEnd, "test_steps_follow_in_order", "the step before was LAST"),
    (ForgetsTheTimeStep, "test_current_time_step_is_the_last_one", "current_time_step"),
    (ReusesItsArray, "test_time_steps_stay_as_they_were_returned", "return a copy"),
    (ChangesTheAction, "test_actions_are_not_changed", "copy the action"),
    (ResetsAtTheMaximum, "test_the_bounds_of_the_actions_are_actions", "a FIRST step"),
    (IgnoresItsSeed, "test_the_same_seed_gives_the_same_run", "seed 7"),
    (ForgetsItsRandomNumbers, "test_a_restored_state_goes_on_as_before", "set_state"),
    (
        ReturnsItsGenerator,
        "test_a_restored_state_goes_on_as_before",
        r"get_state\(\)\[0\]: got a RandomState, expected an array",
    ),
    (ClosesOnce, "test_it_can_be_closed_twice", "closed already"),
    (WrongDtype, "test_it_runs_in_a_graph", "float64"),
]


def suite_of(environment):
    class Suite(testing.PyEnvironmentConformance):
        def make_environment(self):
            return environment()

    return Suite()


def test_a_good_environment_passes():
    suite_of(Walk).run_all()


@pytest.mark.parametrize(
    ("environment", "check", "message"),
    FAULTS,
    ids=[f"{environment.__name__}-{check}" for environment, check, _ in FAULTS],
)
def test_a_fault_is_found(environment, check, message):
    with pytest.raises((AssertionError, ValueError, RuntimeError), match=message):
        getattr(suite_of(environment), check)()


def test_every_check_has_a_fault():
    covered = {check for _, check, _ in FAULTS}
    assert covered == set(testing.PyEnvironmentConformance.checks())


def test_an_environment_without_seed_and_state_passes():
    class Plain(Walk):
        seed = py_environment.PyEnvironment.seed
        get_state = py_environment.PyEnvironment.get_state

    suite_of(Plain).run_all()


def test_a_suite_without_an_environment_says_what_to_write():
    with pytest.raises(NotImplementedError, match="make_environment: not written"):
        testing.PyEnvironmentConformance().run_all()


class TestABandit(testing.PyEnvironmentConformance):
    def make_environment(self):
        return Even()
