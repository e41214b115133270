import collections

import dm_env
import numpy as np
import pytest
from dm_env import specs

from tfrl.environments import utils
from tfrl.environments.dm_control_wrapper import (
    DmControlWrapper,
    convert_spec,
    convert_time_step,
)
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec


class Physics:
    def render(self, height=2, width=3, camera_id=-1):
        return np.full((height, width, 3), camera_id + 1, np.uint8)


class Task:
    def __init__(self):
        self.random = np.random.RandomState(0)


class Control(dm_env.Environment):
    """Like dm_control's environments: float64, and a task with a random state."""

    def __init__(self):
        self.task, self.physics = Task(), Physics()
        self.closed = False

    def reset(self):
        self.actions = []
        return dm_env.restart(self._observe())

    def step(self, action):
        self.actions.append(action)
        if len(self.actions) == 3:
            return dm_env.truncation(0.25, self._observe())
        return dm_env.transition(0.5, self._observe())

    def observation_spec(self):
        return collections.OrderedDict(
            position=specs.Array((2,), np.float64, "position"),
            count=specs.Array((), np.int32, "count"),
        )

    def action_spec(self):
        return specs.BoundedArray((1,), np.float64, -1.0, 1.0)

    def close(self):
        self.closed = True

    def _observe(self):
        return collections.OrderedDict(
            position=self.task.random.uniform(size=2),
            count=np.array(len(self.actions), np.int32),
        )


class Composer(Control):
    """A task of dm_control.composer: the environment holds the random state."""

    def __init__(self):
        super().__init__()
        self.random_state = self.task.random
        self.task = object()

    def _observe(self):
        return collections.OrderedDict(
            position=self.random_state.uniform(size=2), count=np.array(0, np.int32)
        )


def test_first_steps_get_a_reward_and_a_discount():
    converted = convert_time_step(dm_env.restart({"x": np.array([0.1])}))
    assert converted.is_first()
    assert (converted.reward, converted.discount) == (0, 1)
    assert converted.reward.dtype == converted.discount.dtype == np.float32
    assert converted.observation["x"].dtype == np.float32


@pytest.mark.parametrize(
    ("time_step", "discount"),
    [
        (dm_env.transition(2.0, np.int32(3), 0.5), 0.5),
        (dm_env.termination(2.0, np.int32(3)), 0.0),
        (dm_env.truncation(2.0, np.int32(3), 0.9), 0.9),
    ],
)
def test_other_steps_keep_what_they_have(time_step, discount):
    converted = convert_time_step(time_step)
    assert int(converted.step_type) == int(time_step.step_type)
    assert converted.reward == 2
    assert converted.discount == np.float32(discount)
    assert converted.observation.dtype == np.int32


def test_float64_specs_become_float32_and_others_stay():
    assert convert_spec(specs.Array((2,), np.float64, "x")) == ArraySpec(
        (2,), np.float32
    )
    assert convert_spec(specs.Array((), np.uint8)).dtype == np.uint8
    bounded = convert_spec(specs.BoundedArray((1,), np.float64, -2.0, 1e300, "a"))
    limit = np.finfo(np.float32).max
    assert bounded == BoundedArraySpec((1,), np.float32, -2.0, limit)
    assert bounded.name == "a"
    assert convert_spec({"a": specs.DiscreteArray(4)})["a"].maximum == 3


def test_other_objects_than_specs_are_refused():
    with pytest.raises(ValueError, match=r"spec: got 3 of type int.*dm_env.specs"):
        convert_spec({"a": 3})


def test_specs_and_steps_agree():
    environment = DmControlWrapper(Control())
    utils.validate_py_environment(environment, episodes=3)
    assert environment.observation_spec()["position"].dtype == np.float32
    assert environment.observation_spec()["count"].dtype == np.int32


def test_the_task_gets_float64_actions():
    environment = DmControlWrapper(Control())
    environment.reset()
    environment.step(np.array([0.5], np.float32))
    assert environment.actions[0].dtype == np.float64


def test_a_time_limit_keeps_the_discount_and_the_next_step_resets():
    environment = DmControlWrapper(Control())
    environment.reset()
    steps = [environment.step(np.zeros(1, np.float32)) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [1, 1, 2, 0]
    assert [float(step.discount) for step in steps] == [1, 1, 1, 1]
    assert [float(step.reward) for step in steps] == [0.5, 0.5, 0.25, 0]


@pytest.mark.parametrize("make", [Control, Composer])
def test_the_same_seed_gives_the_same_episode(make):
    environment = DmControlWrapper(make())
    positions = []
    for seed in (7, 7, 8):
        assert environment.seed(seed) == seed
        positions.append(environment.reset().observation["position"].tolist())
    assert positions[0] == positions[1] != positions[2]


def test_without_a_random_state_it_cannot_be_seeded():
    control = Control()
    control.task = None
    with pytest.raises(NotImplementedError, match=r"DmControlWrapper\.seed"):
        DmControlWrapper(control).seed(0)


def test_renders_with_its_arguments():
    environment = DmControlWrapper(Control(), {"height": 5, "camera_id": 6})
    picture = environment.render()
    assert (picture.shape, picture.max()) == ((5, 3, 3), 7)
    assert environment.physics.render().shape == (2, 3, 3)
    with pytest.raises(ValueError, match="render: got mode 'human', expected 'rgb_a"):
        environment.render("human")


def test_close():
    control = Control()
    with DmControlWrapper(control):
        pass
    assert control.closed


class Saved(Control):
    """Saves its state itself."""

    def __init__(self):
        super().__init__()
        self.actions = []

    def get_state(self):
        return 5

    def set_state(self, state):
        assert state == 5


def test_a_restored_state_goes_on_in_a_new_environment():
    first, second = DmControlWrapper(Saved()), DmControlWrapper(Saved())
    first.reset()
    action = np.zeros(first.action_spec().shape, first.action_spec().dtype)
    first.step(action)
    second.set_state(first.get_state())
    assert int(second.step(action).step_type) == int(first.step(action).step_type) != 0
