import numpy as np
import pytest

from tfrl.environments import batched_py_environment, py_environment, suite_gym, utils
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class Card(py_environment.PyEnvironment):
    """A game for one: draw (0) until 5 at most, or stop (1)."""

    def __init__(self, **faults):
        super().__init__(handle_auto_reset=not faults.get("never_resets", False))
        self.faults = faults
        self.actions = set()

    def observation_spec(self):
        return array_spec.BoundedArraySpec((1,), np.int32, minimum=0, maximum=5)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def _reset(self):
        self.sum = 0
        if self.faults.get("starts_in_the_middle"):
            return ts.transition(np.array([0], np.int32), 0.0)
        return ts.restart(np.array([0], np.int32))

    def _step(self, action):
        self.actions.add(int(action))
        self.sum = min(self.sum + 1, 5)
        observation = np.array([self.sum], np.int32)
        if self.faults.get("no_end"):
            return ts.transition(observation % 5, 0.0)
        if action == 1 or self.sum == 5:
            return ts.termination(observation * self.faults.get("scale", 1), 1.0)
        return ts.transition(
            observation.astype(self.faults.get("dtype", np.int32)), 0.0
        )


class Masked(Card):
    """Only some of three actions are allowed; the observation says which."""

    def observation_spec(self):
        return {
            "sum": super().observation_spec(),
            "mask": array_spec.BoundedArraySpec((3,), np.int32, 0, 1),
        }

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 2, 4)

    def _reset(self):
        return self._mask(super()._reset())

    def _step(self, action):
        assert action != 3
        return self._mask(super()._step(np.array(int(action) == 2)))

    def _mask(self, time_step):
        mask = np.array(self.faults.get("mask", [1, 0, 1]), np.int32)
        return time_step._replace(
            observation={"sum": time_step.observation, "mask": mask}
        )


def split(observation):
    return observation["sum"], observation["mask"]


def test_a_sound_environment_passes_and_both_actions_are_tried():
    environment = Card()
    utils.validate_py_environment(environment, episodes=20)
    assert environment.actions == {0, 1}


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "Taxi"])
def test_gymnasium_environments_pass(name):
    environment = suite_gym.load(name, max_episode_steps=20)
    utils.validate_py_environment(environment, episodes=2)


def test_batched_environments_pass():
    utils.validate_py_environment(vector_py_environment.load("CartPole-v1", 3))
    utils.validate_py_environment(
        batched_py_environment.BatchedPyEnvironment([Card(), Card()])
    )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            {"dtype": np.int64},
            "observation: got dtype int64, expected an array of dtype int32",
        ),
        ({"scale": 9}, r"observation: got \d+ .* from environment Card at step \d+; c"),
        ({"never_resets": True}, r"step_type: got \d from environment Card .*FIRST"),
        ({"starts_in_the_middle": True}, "step_type: got 1 .* at step 1, expected 0"),
    ],
)
def test_a_fault_is_named(fault, message):
    with pytest.raises(ValueError, match=message):
        utils.validate_py_environment(Card(**fault), episodes=30)


def test_an_episode_without_end_is_an_error():
    with pytest.raises(ValueError, match=r"no LAST from Card in 50 steps.*TimeLimit"):
        utils.validate_py_environment(Card(no_end=True), max_episode_steps=50)


def test_only_allowed_actions_are_tried():
    utils.validate_py_environment(
        Masked(), 20, observation_and_action_constraint_splitter=split
    )


def test_a_mask_that_allows_nothing_is_an_error():
    with pytest.raises(ValueError, match=r"splitter: got the mask .*at least one"):
        utils.validate_py_environment(
            Masked(mask=[0, 0, 0]),
            observation_and_action_constraint_splitter=split,
        )


class Gamble(Card):
    """Each step is a round, and any number is an action."""

    def __init__(self):
        super().__init__(never_resets=True)

    is_bandit = True

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.float64, -np.inf, np.inf)

    def _step(self, action):
        return ts.termination(np.array([1], np.int32), -(float(action) ** 2))


def test_a_bandit_and_actions_without_bounds_are_valid():
    utils.validate_py_environment(Gamble(), episodes=5)
