"""What the environments tutorial does, step by step, on an environment of our own."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import (
    py_environment,
    suite_gym,
    tf_environment,
    tf_py_environment,
    utils,
    wrappers,
)
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts

_LET_GO, _CLIMB = np.array(0, np.int32), np.array(1, np.int32)
_RUNGS = 4


class LadderEnv(py_environment.PyEnvironment):
    """Climb rung by rung and let go: the reward is the height, on top it is -10.

    It starts anew by itself, and does not call the constructor of its base class.
    """

    def __init__(self):
        self._height = 0
        self._over = False

    def observation_spec(self):
        return array_spec.BoundedArraySpec((1,), np.int32, 0, _RUNGS, name="height")

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1, name="climb")

    def _reset(self):
        self._height, self._over = 0, False
        return ts.restart(self._look())

    def _step(self, action):
        if self._over:
            return self.reset()
        if action not in (0, 1):
            raise ValueError(f"climb is 0 or 1, not {action}")
        self._height += int(action)
        on_top = self._height == _RUNGS
        self._over = on_top or action == 0
        if self._over:
            return ts.termination(self._look(), -10 if on_top else self._height)
        return ts.transition(self._look(), reward=0.0, discount=1.0)

    def _look(self):
        return np.array([self._height], np.int32)


class BrokenLadderEnv(LadderEnv):
    """Says something else than its specs; `look` is what it observes."""

    def __init__(self, look):
        super().__init__()
        self._broken_look = look

    def _look(self):
        return self._broken_look


def _cart_pole_bounds():
    limit = np.finfo(np.float32).max
    space = gymnasium.make("CartPole-v0").observation_space
    return np.clip(space.low, -limit, limit), np.clip(space.high, -limit, limit)


def _fields(time_step):
    return [np.asarray(x).tolist() for x in time_step]


# Environments from Gymnasium.


def test_specs_of_a_gym_environment_print_all_that_they_say():
    environment = suite_gym.load("CartPole-v0")
    low, high = _cart_pole_bounds()
    spec = environment.time_step_spec()
    assert repr(environment.action_spec()) == (
        "BoundedArraySpec(shape=(), dtype=dtype('int64'), name='action', minimum=0, "
        "maximum=1)"
    )
    assert repr(spec.observation) == (
        "BoundedArraySpec(shape=(4,), dtype=dtype('float32'), name='observation', "
        f"minimum={low}, maximum={high})"
    )
    assert repr(spec.step_type) == (
        "ArraySpec(shape=(), dtype=dtype('int32'), name='step_type')"
    )
    assert repr(spec.discount) == (
        "BoundedArraySpec(shape=(), dtype=dtype('float32'), name='discount', "
        "minimum=0.0, maximum=1.0)"
    )
    assert repr(spec.reward) == (
        "ArraySpec(shape=(), dtype=dtype('float32'), name='reward')"
    )


def test_pushing_one_way_only_ends_an_episode_within_a_few_steps():
    environment = suite_gym.load("CartPole-v0")
    push_right = np.array(1, np.int32)
    seen = [environment.reset()]
    while not seen[-1].is_last():
        seen.append(environment.step(push_right))
    assert 5 < len(seen) - 1 < 15
    assert [int(x.step_type) for x in seen] == [0, *[1] * (len(seen) - 2), 2]
    assert [float(x.reward) for x in seen] == [0.0, *[1.0] * (len(seen) - 1)]
    assert [float(x.discount) for x in seen] == [*[1.0] * (len(seen) - 1), 0.0]
    for time_step in seen:
        assert time_step.observation.shape == (4,)
        dtypes = [np.asarray(x).dtype for x in time_step]
        assert dtypes == [np.int32, np.float32, np.float32, np.float32]


def test_time_step_prints_each_field_with_its_array():
    printed = str(LadderEnv().reset())
    assert printed.startswith("TimeStep(")
    for field in (
        "'step_type': array(0, dtype=int32)",
        "'reward': array(0., dtype=float32)",
        "'discount': array(1., dtype=float32)",
        "'observation': array([0], dtype=int32)",
    ):
        assert field in printed


# An environment of one's own.


def test_own_environment_passes_validation():
    utils.validate_py_environment(LadderEnv(), episodes=5)


@pytest.mark.parametrize(
    ("look", "message"),
    [
        (np.array([0, 0], np.int32), r"observation: got shape \(2,\), expected \(1,\)"),
        (
            np.array([0.5], np.float32),
            r"observation: got dtype float32 with 0.5, expected .* int32",
        ),
        (
            np.array([9], np.int32),
            r"observation: got 9 .*expected a number in \[0, 4\]",
        ),
        ({"height": 0}, r"observation: got a dict, expected an array"),
    ],
)
def test_validation_tells_what_does_not_follow_the_specs(look, message):
    with pytest.raises(ValueError, match=message):
        utils.validate_py_environment(BrokenLadderEnv(look), episodes=1)


def test_fixed_actions_give_the_rewards_worked_by_hand():
    environment = LadderEnv()
    time_step = environment.reset()
    assert _fields(time_step) == [0, 0.0, 1.0, [0]]
    total = time_step.reward
    for height in (1, 2, 3):
        time_step = environment.step(_CLIMB)
        assert _fields(time_step) == [1, 0.0, 1.0, [height]]
        total += time_step.reward
    time_step = environment.step(_LET_GO)
    assert _fields(time_step) == [2, 3.0, 0.0, [3]]
    total += time_step.reward
    assert total == 3.0
    assert total.dtype == np.float32
    assert environment.current_time_step() is time_step


def test_step_after_the_end_ignores_its_action_and_starts_anew():
    environment = LadderEnv()
    assert _fields(environment.step(_CLIMB)) == [0, 0.0, 1.0, [0]]
    for _ in range(_RUNGS):
        time_step = environment.step(_CLIMB)
    assert _fields(time_step) == [2, -10.0, 0.0, [_RUNGS]]
    assert _fields(environment.step(_CLIMB)) == [0, 0.0, 1.0, [0]]
    assert _fields(environment.step(_CLIMB)) == [1, 0.0, 1.0, [1]]


def test_error_of_the_environment_reaches_the_user():
    environment = LadderEnv()
    environment.reset()
    with pytest.raises(ValueError, match="climb is 0 or 1, not 7"):
        environment.step(np.array(7, np.int32))


# Wrappers.


def test_discretized_pendulum_takes_one_of_five_torques():
    continuous = suite_gym.load("Pendulum-v1")
    assert repr(continuous.action_spec()) == (
        "BoundedArraySpec(shape=(1,), dtype=dtype('float32'), name='action', "
        "minimum=-2.0, maximum=2.0)"
    )
    environment = wrappers.ActionDiscretizeWrapper(continuous, num_actions=5)
    assert isinstance(environment, py_environment.PyEnvironment)
    assert repr(environment.action_spec()) == (
        "BoundedArraySpec(shape=(), dtype=dtype('int32'), name='action', minimum=0, "
        "maximum=4)"
    )
    utils.validate_py_environment(environment, episodes=1)


@pytest.mark.parametrize(("choice", "torque"), [(0, -2), (1, -1), (2, 0), (4, 2)])
def test_discrete_torque_moves_the_pendulum_as_the_continuous_one(choice, torque):
    discrete = wrappers.ActionDiscretizeWrapper(
        suite_gym.load("Pendulum-v1"), num_actions=5
    )
    continuous = suite_gym.load("Pendulum-v1")
    for environment in (discrete, continuous):
        environment.seed(3)
        environment.reset()
    ours = discrete.step(np.array(choice, np.int32))
    expected = continuous.step(np.array([torque], np.float32))
    np.testing.assert_array_equal(ours.observation, expected.observation)
    np.testing.assert_array_equal(ours.reward, expected.reward)


# TensorFlow environments.


def test_specs_of_a_wrapped_environment_are_tensor_specs():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    low, high = _cart_pole_bounds()
    assert isinstance(environment, tf_environment.TFEnvironment)
    spec = environment.time_step_spec()
    assert isinstance(spec.observation, tensor_spec.BoundedTensorSpec)
    assert repr(spec.step_type) == (
        "TensorSpec(shape=(), dtype=tf.int32, name='step_type')"
    )
    assert repr(spec.reward) == "TensorSpec(shape=(), dtype=tf.float32, name='reward')"
    assert repr(spec.discount) == (
        "BoundedTensorSpec(shape=(), dtype=tf.float32, name='discount', "
        "minimum=array(0., dtype=float32), maximum=array(1., dtype=float32))"
    )
    assert repr(spec.observation) == (
        "BoundedTensorSpec(shape=(4,), dtype=tf.float32, name='observation', "
        f"minimum={low!r}, maximum={high!r})"
    )
    assert repr(environment.action_spec()) == (
        "BoundedTensorSpec(shape=(), dtype=tf.int64, name='action', "
        "minimum=array(0), maximum=array(1))"
    )


def test_three_transitions_chain_and_earn_three():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    now = environment.reset()
    earned, transitions = 0, []
    for i in range(3):
        push = tf.constant([i % 2])
        after = environment.step(push)
        transitions.append([now, push, after])
        earned += after.reward
        now = after
    assert str(earned.numpy()) == "[3.]"
    arrays = tf.nest.map_structure(lambda x: x.numpy(), transitions)
    assert [before.step_type.tolist() for before, _, _ in arrays] == [[0], [1], [1]]
    assert [push.tolist() for _, push, _ in arrays] == [[0], [1], [0]]
    assert push.dtype == tf.int32
    for i, (before, _, after) in enumerate(arrays):
        assert isinstance(before, ts.TimeStep)
        assert before.observation.shape == after.observation.shape == (1, 4)
        assert after.reward.tolist() == after.discount.tolist() == [1.0]
        if i:
            np.testing.assert_array_equal(
                before.observation, arrays[i - 1][2].observation
            )


def test_whole_episodes_of_random_actions_earn_one_a_step():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    returns, lengths = [], []
    now = environment.reset()
    for _ in range(5):
        earned, length = 0, 0
        while not now.is_last():
            now = environment.step(tf.random.uniform([1], 0, 2, dtype=tf.int32))
            length += 1
            earned += now.reward.numpy()
        returns.append(earned)
        lengths.append(length)
        now = environment.reset()
    assert min(lengths) > 5
    assert np.shape(returns) == (5, 1)
    assert np.ravel(returns).tolist() == lengths
