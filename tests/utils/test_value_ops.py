"""TF-Agents' arguments for returns and advantages."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import value_ops

REWARDS = np.array([[1.0, 2.0, 4.0], [1.0, 0.0, 8.0]], np.float32)
DISCOUNTS = np.full_like(REWARDS, 0.5)
RETURNS = [[3.0, 4.0, 4.0], [3.0, 4.0, 8.0]]


def test_time_is_the_first_dimension_by_default():
    returns = value_ops.discounted_return(REWARDS.T, DISCOUNTS.T)
    np.testing.assert_array_equal(returns, np.transpose(RETURNS))


def test_batch_major_returns():
    returns = value_ops.discounted_return(REWARDS, DISCOUNTS, time_major=False)
    np.testing.assert_array_equal(returns, RETURNS)


@pytest.mark.parametrize("time_major", [True, False])
def test_first_return_alone_has_no_time(time_major):
    arguments = (REWARDS.T, DISCOUNTS.T) if time_major else (REWARDS, DISCOUNTS)
    returns = value_ops.discounted_return(
        *arguments, time_major=time_major, provide_all_returns=False
    )
    np.testing.assert_array_equal(returns, [3, 3])


def test_final_value_is_bootstrapped():
    returns = value_ops.discounted_return(
        REWARDS, DISCOUNTS, final_value=tf.constant([8.0, 16.0]), time_major=False
    )
    np.testing.assert_array_equal(returns, np.add(RETURNS, [[1, 2, 4], [2, 4, 8]]))


@pytest.mark.parametrize("final_value", [8.0, [8.0]])
def test_single_sequence(final_value):
    returns = value_ops.discounted_return(REWARDS[0], DISCOUNTS[0], final_value)
    np.testing.assert_array_equal(returns, [4, 6, 8])


def test_returns_carry_no_gradient():
    rewards = tf.constant(REWARDS)
    with tf.GradientTape() as tape:
        tape.watch(rewards)
        returns = value_ops.discounted_return(rewards, rewards)
    assert tape.gradient(returns, rewards) is None


def test_gae_takes_the_next_steps_value_and_at_last_the_final_one():
    values = np.array([[2.0, 4.0, 6.0]], np.float32)
    # delta = [1+.5*4-2, 1+.5*6-4, 1+.5*8-6] = [1, 0, -1], summed with .5 * .5.
    expected = [[1 - 0.0625, -0.25, -1]]
    arguments = np.ones_like(values), np.full_like(values, 0.5)
    rewards, discounts = arguments
    batch_major = value_ops.generalized_advantage_estimation(
        values, [8.0], discounts, rewards, td_lambda=0.5, time_major=False
    )
    np.testing.assert_array_equal(batch_major, expected)
    time_major = value_ops.generalized_advantage_estimation(
        values.T, [8.0], discounts.T, rewards.T, td_lambda=0.5
    )
    np.testing.assert_array_equal(time_major, np.transpose(expected))
