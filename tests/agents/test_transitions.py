"""Sequences for recurrent networks against loops over their steps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.dqn import recurrent_by_hand
from tfrl import agents
from tfrl.agents import transitions
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

VALID = np.array([[1, 1, 0, 1, 1, 1], [1, 0, 0, 1, 1, 0], [1, 1, 1, 1, 1, 1]], bool)


def last_step(row, t, n):
    """The last step of the n-step return that begins with step `t`."""
    last = t
    while last + 1 < min(t + n, VALID.shape[1]) and VALID[row, last : last + 2].all():
        last += 1
    return last


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_n_step_returns_stop_before_masked_steps(n):
    rng = np.random.default_rng(0)
    rewards, discounts = rng.uniform(size=[2, *VALID.shape]) * VALID
    # Several numbers for each state, as of a distribution.
    values = rng.normal(size=[*VALID.shape, 4])
    sums, products = transitions.n_step_sums(
        tf.constant(rewards), tf.constant(discounts), tf.constant(VALID), n
    )
    ends = transitions.after_n_steps(tf.constant(values), tf.constant(VALID), n)
    for row, t in np.argwhere(VALID):
        last = last_step(row, t, n)
        total, worth = 0.0, 1.0
        for k in range(t, last + 1):
            total += worth * rewards[row, k]
            worth *= discounts[row, k]
        np.testing.assert_allclose(sums[row, t], total, rtol=1e-9)
        np.testing.assert_allclose(products[row, t], worth, rtol=1e-9)
        np.testing.assert_array_equal(ends[row, t], values[row, last])


def test_a_split_marks_the_episode_that_begins_at_it():
    first, mid, last = 0, 1, 2
    frames = recurrent_by_hand.frames(
        [[mid, last, first, mid, mid], [mid, mid, mid, mid, mid]],
        [[last, first, mid, mid, mid], [mid, first, mid, mid, mid]],
    )
    transition = trajectory.to_transition(frames)
    before, after = transitions.split(transition, 2)
    np.testing.assert_array_equal(before.step_type, [[mid, last], [mid, last]])
    # The second row has a cut after its second frame.
    np.testing.assert_array_equal(after.time_step.step_type, [[first, mid]] * 2)
    np.testing.assert_array_equal(after.next_time_step.reward, frames.reward[:, 2:-1])
    whole = transitions.whole_sequence(after.time_step, after.next_time_step)
    np.testing.assert_array_equal(whole.observation, frames.observation[:, 2:])
    np.testing.assert_array_equal(whole.step_type, [[first, mid, mid]] * 2)


@pytest.mark.parametrize("dtype", [tf.float64, tf.int32])
def test_rewards_of_other_dtypes_give_the_loss_of_float32(dtype):
    observation = tf.TensorSpec([2], tf.float32)
    spec = ts.time_step_spec(observation)
    found = []
    for own in (tf.float32, dtype):
        agent = agents.DqnAgent(
            spec._replace(reward=tf.TensorSpec([], own)),
            tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2),
            keras.layers.Dense(3, kernel_initializer="ones"),
            keras.optimizers.SGD(0.1),
            gamma=0.9,
            reward_scale_factor=0.5,
        )
        ones = tf.ones([4, 2], tf.int32)
        frames = trajectory.Trajectory(
            step_type=ones,
            observation=tf.ones([4, 2, 2]),
            action=ones,
            policy_info=(),
            next_step_type=ones,
            reward=tf.cast(3 * ones, own),
            discount=tf.ones([4, 2]),
        )
        found.append(agent.train(frames).extra.td_error)
    np.testing.assert_array_equal(*found)
    # 0.5 * 3 + 0.9 * 2 - 2.
    np.testing.assert_allclose(found[0], [1.3] * 4, rtol=1e-6)
