"""Trajectory frames: predicates and constructors."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

FIRST, MID, LAST = 0, 1, 2


def frames(step_type, next_step_type):
    return trajectory.Trajectory(step_type, (), (), (), next_step_type, (), ())


@pytest.mark.parametrize("convert", [np.array, tf.constant])
def test_predicates(convert):
    # (FIRST,MID), (MID,MID), (MID,LAST), (LAST,FIRST), (FIRST,LAST).
    traj = frames(convert([0, 1, 1, 2, 0]), convert([1, 1, 2, 0, 2]))
    np.testing.assert_array_equal(traj.is_first(), [1, 0, 0, 0, 1])
    np.testing.assert_array_equal(traj.is_mid(), [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(traj.is_last(), [0, 0, 1, 0, 1])
    np.testing.assert_array_equal(traj.is_boundary(), [0, 0, 0, 1, 0])


@pytest.mark.parametrize("convert", [np.array, tf.constant])
def test_padding_neither_ends_an_episode_nor_leaves_it(convert):
    # (MID,LAST), (FIRST,LAST), (LAST,LAST), (LAST,FIRST), (MID,MID).
    traj = frames(convert([1, 0, 2, 2, 1]), convert([2, 2, 2, 0, 1]))
    np.testing.assert_array_equal(traj.is_last(), [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(traj.is_episode_end(), [1, 1, 0, 0, 0])
    np.testing.assert_array_equal(traj.is_boundary(), [0, 0, 1, 1, 0])
    np.testing.assert_array_equal(traj.is_reset(), [0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("make", "step_type", "next_step_type"),
    [
        (trajectory.first, FIRST, MID),
        (trajectory.mid, MID, MID),
        (trajectory.last, MID, LAST),
        (trajectory.single_step, FIRST, LAST),
        (trajectory.boundary, LAST, FIRST),
    ],
)
def test_constructors_set_the_step_types(make, step_type, next_step_type):
    arrays = make(np.zeros((2, 3)), {"a": np.ones(2)}, (), np.ones(2), np.ones(2))
    tensors = make(tf.zeros([2, 3]), {"a": np.ones(2)}, (), np.ones(2), np.ones(2))
    for traj in (arrays, tensors):
        np.testing.assert_array_equal(traj.step_type, [step_type] * 2)
        np.testing.assert_array_equal(traj.next_step_type, [next_step_type] * 2)
    assert isinstance(arrays.step_type, np.ndarray)
    assert arrays.discount.dtype == np.float32
    assert all(map(tf.is_tensor, tf.nest.flatten(tensors)))


def test_replace_returns_a_changed_copy():
    traj = frames(np.array(0), np.array(1))
    assert traj.replace(policy_info=5).policy_info == 5


def test_from_transition_takes_reward_and_discount_of_the_next_step():
    traj = trajectory.from_transition(
        ts.restart(np.array([1.0])),
        policy_step.PolicyStep(action=np.array(3), info={"p": 4}),
        ts.termination(np.array([2.0]), reward=5.0),
    )
    assert (traj.step_type, traj.next_step_type) == (FIRST, LAST)
    assert (traj.action, traj.policy_info) == (3, {"p": 4})
    assert (traj.reward, traj.discount) == (5.0, 0.0)
    assert traj.observation == 1.0


def test_from_episode_of_arrays_stays_numpy():
    traj = trajectory.from_episode(
        observation={"x": np.arange(6).reshape(3, 2)},
        action=np.array([7, 8, 9]),
        policy_info=(),
        reward=np.array([1.0, 2.0, 3.0]),
    )
    np.testing.assert_array_equal(traj.step_type, [FIRST, MID, MID])
    np.testing.assert_array_equal(traj.next_step_type, [MID, MID, LAST])
    np.testing.assert_array_equal(traj.discount, [1, 1, 1])
    assert traj.discount.dtype == np.float32
    assert not any(map(tf.is_tensor, tf.nest.flatten(traj)))


def test_from_episode_with_a_tensor_is_made_of_tensors():
    traj = trajectory.from_episode(
        tf.zeros([1, 2]), np.array([1]), (), np.array([1.0]), np.array([0.5])
    )
    np.testing.assert_array_equal(traj.step_type, [FIRST])
    np.testing.assert_array_equal(traj.next_step_type, [LAST])
    assert all(map(tf.is_tensor, tf.nest.flatten(traj)))


def test_from_episode_of_unknown_length():
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def step_types(reward):
        return trajectory.from_episode(reward, reward, (), reward).next_step_type

    np.testing.assert_array_equal(step_types(tf.zeros([3])), [MID, MID, LAST])


@pytest.mark.parametrize("convert", [np.array, tf.constant])
def test_from_episode_names_the_argument_of_another_length(convert):
    three, two = convert([1.0, 2.0, 3.0]), convert([1.0, 2.0])
    with pytest.raises(
        ValueError, match=r"observation/x has first dimension 2, expected 3.*every"
    ):
        trajectory.from_episode({"x": two}, three, (), three)
