"""Rewards divided by the standard deviation of returns, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils.reward_normalizer import RewardNormalizer

RNG = np.random.default_rng(0)
STEPS, BATCH = 50, 3
REWARDS = RNG.normal(20, 5, [BATCH, STEPS]).astype(np.float32)
IS_FIRST = RNG.random([BATCH, STEPS]) < 0.2
# The step before the first of an episode is a boundary, without a reward.
COUNTS = np.pad(~IS_FIRST[:, 1:], [(0, 0), (0, 1)], constant_values=True)


def expected_scale(gamma, steps=STEPS):
    """VecNormalize's rule, step by step."""
    running, returns = np.zeros(BATCH), []
    for t in range(steps):
        running = REWARDS[:, t] + gamma * np.where(IS_FIRST[:, t], 0, running)
        returns += list(running[COUNTS[:, t]])
    return 1 / np.std(returns)


def arguments(steps):
    """The arguments of an update with these steps; masked rewards may be anything."""
    rewards = np.where(COUNTS, REWARDS, np.nan)
    return [tf.constant(x[:, steps]) for x in (rewards, IS_FIRST, COUNTS)]


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_rewards_are_divided_by_the_deviation_of_returns(gamma, jit_compile):
    normalizer = RewardNormalizer(BATCH, gamma, clip_value=0)
    update = tf.function(normalizer.update, jit_compile=jit_compile)
    for t in range(STEPS):
        update(*arguments(t))
    assert update.experimental_get_tracing_count() == 1
    scaled = normalizer.normalize(tf.constant([3.0, -1.0]))
    np.testing.assert_allclose(
        scaled, expected_scale(gamma) * np.array([3, -1]), rtol=1e-5
    )


def test_without_discount_the_deviation_is_that_of_rewards():
    normalizer = RewardNormalizer(gamma=0.0, clip_value=0)
    rewards = tf.constant([[1.0, 5.0, 3.0]])
    normalizer.update(rewards, tf.zeros([1, 3], tf.bool))
    np.testing.assert_allclose(
        normalizer.normalize(rewards[0]), [1, 5, 3] / np.sqrt(8 / 3), rtol=1e-6
    )


def test_sequences_count_as_their_steps_one_by_one():
    sequences, steps = (RewardNormalizer(BATCH, 0.9) for _ in range(2))
    for start, stop in ((0, 1), (1, 20), (20, STEPS)):
        sequences.update(*arguments(slice(start, stop)))
    for t in range(STEPS):
        steps.update(*arguments(t))
    # The step after them continues their episodes.
    for normalizer in (sequences, steps):
        normalizer.update(tf.fill([BATCH], 900.0), tf.fill([BATCH], False))
    np.testing.assert_allclose(
        *(each.normalize(tf.constant([3.0])) for each in (sequences, steps)), rtol=1e-5
    )


@pytest.mark.parametrize("is_padding", [False, True])
def test_returns_pass_over_steps_that_do_not_count(is_padding):
    normalizer = RewardNormalizer(gamma=0.5)
    rewards = tf.constant([[4.0, 9.0, 1.0]])
    normalizer.update(
        rewards,
        is_first=tf.constant([[True, is_padding, False]]),
        mask=tf.constant([[True, False, True]]),
    )
    # The standard deviation of the returns 4 and 1 + 0.5 * 4 is 0.5.
    np.testing.assert_allclose(normalizer.normalize(tf.constant([1.0])), [2], rtol=1e-6)


def test_rewards_are_clipped_and_not_scaled_until_returns_differ():
    normalizer = RewardNormalizer(gamma=0.0)
    rewards = tf.constant([7.0, -16.0])
    np.testing.assert_array_equal(normalizer.normalize(rewards), [7, -10])
    for _ in range(3):
        normalizer.update(tf.constant([3.0]), tf.constant([False]))
    np.testing.assert_array_equal(normalizer.normalize(rewards), [7, -10])


def test_results_are_clipped():
    rewards = tf.constant([-100.0, 2.0, 11.0], tf.float64)
    result = RewardNormalizer().normalize(rewards)
    assert result.dtype == tf.float64
    np.testing.assert_array_equal(result, [-10, 2, 10])


def test_another_number_of_environments_is_refused():
    with pytest.raises(
        ValueError, match=r"rewards: expected the rewards of 1 .*got shape"
    ):
        RewardNormalizer().update(tf.zeros([4]), tf.zeros([4], tf.bool))


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 0}, {"gamma": 1.1}, {"clip_value": -1}]
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected"):
        RewardNormalizer(**wrong)


def test_rewards_themselves_may_come_in_batches_of_any_size():
    normalizer = RewardNormalizer(batch_size=None, gamma=0.0)
    for rewards in ([1.0, 3.0], [[5.0, 7.0, 9.0]]):
        normalizer.update(tf.constant(rewards), tf.zeros_like(rewards, tf.bool))
    expected = 2.0 / np.std([1.0, 3.0, 5.0, 7.0, 9.0])
    np.testing.assert_allclose(normalizer.normalize(tf.constant(2.0)), expected, 1e-5)


def test_returns_need_the_number_of_environments():
    with pytest.raises(ValueError, match=r"batch_size: got None with gamma=0\.9"):
        RewardNormalizer(batch_size=None, gamma=0.9)
