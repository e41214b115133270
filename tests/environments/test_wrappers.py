import numpy as np
import pytest

from tfrl.environments import batched_py_environment, py_environment, wrappers
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class Recorder(py_environment.PyEnvironment):
    """Remembers its actions; ends after `length` steps and can save its state."""

    def __init__(self, action_spec=None, length=3, handle_auto_reset=True):
        super().__init__(handle_auto_reset)
        self._action_spec = action_spec or array_spec.BoundedArraySpec(
            (), np.int32, 0, 1
        )
        self._length = length
        self.count = 0
        self.actions = []

    def observation_spec(self):
        return array_spec.ArraySpec((), np.float32)

    def action_spec(self):
        return self._action_spec

    def reward_spec(self):
        return array_spec.ArraySpec((), np.float32, name="points")

    def get_state(self):
        return self.count

    def set_state(self, state):
        self.count = state

    def get_info(self):
        return {"count": self.count}

    def _reset(self):
        self.count = 0
        return ts.restart(np.float32(0.0))

    def _step(self, action):
        self.actions.append(action)
        self.count += 1
        if self.count >= self._length:
            return ts.termination(np.float32(self.count), 1.0)
        return ts.transition(np.float32(self.count), 1.0, 0.9)


def float_spec(shape=(1,), minimum=-2.0, maximum=2.0):
    return array_spec.BoundedArraySpec(
        shape, np.float32, minimum, maximum, name="action"
    )


def step_types(environment, steps, action=0):
    return [int(environment.step(action).step_type) for _ in range(steps)]


def test_base_wrapper_hands_everything_on():
    inner = Recorder()
    environment = wrappers.PyEnvironmentBaseWrapper(inner)
    environment.reset()
    environment.step(1)
    assert inner.actions == [1]
    assert environment.wrapped_env() is inner
    assert environment.get_info() == {"count": 1}
    assert environment.count == 1
    assert environment.time_step_spec() == inner.time_step_spec()
    assert not environment.batched
    assert environment.batch_size is None


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_time_limit_truncates_with_the_discount_kept(handle_auto_reset):
    environment = wrappers.TimeLimit(Recorder(length=9), 2, handle_auto_reset)
    steps = [environment.step(0) for _ in range(6)]
    assert [int(step.step_type) for step in steps] == [0, 1, 2, 0, 1, 2]
    assert steps[2].discount == np.float32(0.9)
    assert environment.duration == 2


def test_termination_at_the_time_limit_stays_a_termination():
    environment = wrappers.TimeLimit(Recorder(length=2), 2)
    environment.reset()
    environment.step(0)
    time_step = environment.step(0)
    assert time_step.is_last()
    assert time_step.discount == 0.0


def test_time_limit_above_the_length_changes_nothing():
    environment = wrappers.TimeLimit(Recorder(length=2), 5)
    assert step_types(environment, 7) == [0, 1, 2, 0, 1, 2, 0]


def test_time_limit_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="duration: got 0, expected an integer of at least 1"):
        wrappers.TimeLimit(Recorder(), 0)
    batch = batched_py_environment.BatchedPyEnvironment([Recorder()], False)
    with pytest.raises(ValueError, match="env: got a batched environment"):
        wrappers.TimeLimit(batch, 3)


def test_state_of_a_chain_of_wrappers_continues_exactly():
    def make():
        return wrappers.RunStats(wrappers.TimeLimit(Recorder(length=7), 4))

    environment = make()
    step_types(environment, 4)
    captured = py_environment.capture_state(environment)
    expected = step_types(environment, 6)
    resumed = make()
    py_environment.restore_state(resumed, captured)
    assert step_types(resumed, 6) == expected == [2, 0, 1, 1, 1, 2]
    assert (resumed.episodes, resumed.total_steps) == (2, 8)


def test_run_stats_counts_steps_episodes_and_resets():
    environment = wrappers.RunStats(Recorder(length=3))
    assert step_types(environment, 6) == [0, 1, 1, 2, 0, 1]
    assert environment.resets == 2
    assert environment.episodes == 1
    assert environment.total_steps == 4
    assert environment.episode_steps == 1


def test_run_stats_counts_all_members_of_a_batch():
    environment = wrappers.RunStats(
        batched_py_environment.BatchedPyEnvironment(
            [Recorder(length=1), Recorder(length=2)], multithreading=False
        )
    )
    for _ in range(4):
        environment.step(np.zeros(2, np.int32))
    # Member 0: FIRST LAST FIRST LAST; member 1: FIRST MID LAST FIRST.
    assert environment.resets == 4
    assert environment.episodes == 3
    assert environment.total_steps == 4
    assert environment.episode_steps.tolist() == [1, 0]


def test_discretize_offers_evenly_spaced_actions():
    inner = Recorder(float_spec())
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=5)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((), np.int32)
    assert (spec.minimum, spec.maximum, spec.name) == (0, 4, "action")
    environment.reset()
    for action in range(5):
        environment.step(np.array(action))
        environment.reset()
    assert [a.tolist() for a in inner.actions] == [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
    assert inner.actions[0].dtype == np.float32


def test_discretize_takes_a_number_of_actions_for_each_element():
    inner = Recorder(float_spec((2,), [-1.0, 0.0], [1.0, 9.0]))
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=[3, 4])
    assert environment.action_spec().maximum.tolist() == [2, 3]
    environment.reset()
    environment.step(np.array([1, 2]))
    assert inner.actions[0].tolist() == [0.0, 6.0]


def test_discretize_maps_a_batch():
    members = [Recorder(float_spec()), Recorder(float_spec())]
    environment = wrappers.ActionDiscretizeWrapper(
        batched_py_environment.BatchedPyEnvironment(members, multithreading=False), 3
    )
    environment.reset()
    environment.step(np.array([0, 2], np.int32))
    assert [member.actions[0].tolist() for member in members] == [[-2.0], [2.0]]


def test_discretize_keeps_a_nest_of_one():
    inner = Recorder({"force": float_spec()})
    environment = wrappers.ActionDiscretizeWrapper(inner, 2)
    environment.reset()
    environment.step(np.array(1))
    assert inner.actions[0]["force"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("spec", "num_actions", "message"),
    [
        (array_spec.BoundedArraySpec((), np.int32, 0, 1), 2, "expected a single"),
        (array_spec.ArraySpec((), np.float32), 2, "expected a single"),
        (array_spec.BoundedArraySpec((), np.float32), 2, "finite bounds"),
        ([float_spec(), float_spec()], 2, "expected a single"),
        (float_spec(), 1, "num_actions: got 1, expected at least 2"),
        (float_spec((3,)), [2, 2], r"num_actions: got shape \(2,\)"),
    ],
)
def test_discretize_refuses_other_actions(spec, num_actions, message):
    with pytest.raises(ValueError, match=message):
        wrappers.ActionDiscretizeWrapper(Recorder(spec), num_actions)


@pytest.mark.parametrize(
    ("action", "message"), [([0], "got shape"), (-1, "from 0 to 4"), (5, "from 0 to 4")]
)
def test_discretize_refuses_bad_actions(action, message):
    environment = wrappers.ActionDiscretizeWrapper(Recorder(float_spec()), 5)
    environment.reset()
    with pytest.raises(ValueError, match=f"action: .*{message}"):
        environment.step(np.array(action))


def test_clip_brings_actions_into_the_bounds_of_each_spec():
    spec = {"a": float_spec((2,)), "b": array_spec.ArraySpec((), np.float32)}
    inner = Recorder(spec)
    environment = wrappers.ActionClipWrapper(inner)
    environment.reset()
    environment.step({"a": np.array([-5.0, 1.0]), "b": np.float32(7.0)})
    assert inner.actions[0]["a"].tolist() == [-2.0, 1.0]
    assert inner.actions[0]["b"] == 7.0


def test_offset_makes_actions_start_at_zero():
    inner = Recorder(array_spec.BoundedArraySpec((), np.int64, -1, 2, name="move"))
    environment = wrappers.ActionOffsetWrapper(inner)
    spec = environment.action_spec()
    assert (spec.minimum, spec.maximum, spec.name) == (0, 3, "move")
    environment.reset()
    environment.step(np.array(0))
    assert inner.actions == [-1]
    assert inner.actions[0].dtype == np.int64


@pytest.mark.parametrize(
    "spec",
    [
        float_spec(),
        array_spec.ArraySpec((), np.int32),
        [array_spec.BoundedArraySpec((), np.int32, 1, 2)],
    ],
)
def test_offset_refuses_other_actions(spec):
    with pytest.raises(
        ValueError, match=r"expected a single BoundedArraySpec of integ"
    ):
        wrappers.ActionOffsetWrapper(Recorder(spec))
