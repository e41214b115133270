"""Munchausen's reward and value against worked numbers."""

import math

import numpy as np
import tensorflow as tf

from tfrl import losses


def test_bonus_of_a_worked_example():
    # With a temperature of 0.5, pi is proportional to exp([0, 3, 4]).
    q_values = np.array([[0.0, 1.5, 2.0]] * 3)
    log_pi = np.array([0, 3, 4]) - math.log(1 + math.exp(3) + math.exp(4))
    bonus = losses.munchausen_bonus(q_values, [0, 1, 2], 0.9, 0.5, -1.0)
    # The first one, 0.5 * -4.33, is clipped.
    expected = 0.9 * np.array([-1.0, 0.5 * log_pi[1], 0.5 * log_pi[2]])
    np.testing.assert_allclose(bonus, expected, rtol=1e-6)


def test_value_of_a_worked_example():
    q_values = np.array([[0.0, 1.0, 2.0]])
    pi = np.exp([0, 2, 4]) / np.exp([0, 2, 4]).sum()
    value = losses.munchausen_value(q_values, q_values, 0.5)
    np.testing.assert_allclose(
        value, [pi @ (q_values[0] - 0.5 * np.log(pi))], rtol=1e-6
    )
    # It is the smooth maximum.
    np.testing.assert_allclose(
        value, [0.5 * np.log(np.exp([0, 2, 4]).sum())], rtol=1e-6
    )


def test_value_of_quantiles_adds_the_entropy_to_each():
    rng = np.random.default_rng(0)
    quantiles = rng.normal(size=[2, 3, 4])
    judge = quantiles.mean(axis=-1)
    value = losses.munchausen_value(quantiles, judge, 0.3)
    assert value.shape == (2, 4)
    np.testing.assert_allclose(
        tf.reduce_mean(value, -1), losses.munchausen_value(judge, judge, 0.3), rtol=1e-6
    )
    pi = np.exp(judge / 0.3) / np.exp(judge / 0.3).sum(axis=-1, keepdims=True)
    terms = quantiles - 0.3 * np.log(pi)[..., np.newaxis]
    np.testing.assert_allclose(
        value, (pi[..., np.newaxis] * terms).sum(axis=1), rtol=1e-6
    )


def test_actions_that_are_not_possible_do_not_count():
    lowest = np.finfo(np.float32).min
    for best in (-5.0, 5.0):
        with_mask = np.array([[best, lowest, best - 0.01]], np.float32)
        without = np.array([[best, best - 0.01]], np.float32)
        np.testing.assert_allclose(
            losses.munchausen_value(with_mask, with_mask, 0.03),
            losses.munchausen_value(without, without, 0.03),
            rtol=1e-6,
        )
        np.testing.assert_allclose(
            losses.munchausen_bonus(with_mask, [2], 0.9, 0.03, -1.0),
            losses.munchausen_bonus(without, [1], 0.9, 0.03, -1.0),
            rtol=1e-5,
        )
        assert losses.munchausen_bonus(with_mask, [1], 0.9, 0.03, -1.0) == -0.9


def test_no_gradient_flows():
    q_values = tf.Variable([[0.0, 1.0]])
    with tf.GradientTape() as tape:
        total = losses.munchausen_value(q_values, q_values, 0.5)
        total += losses.munchausen_bonus(q_values, [0], 0.9, 0.5, -1.0)
    assert tape.gradient(total, q_values) is None
