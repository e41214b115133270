"""Quantile regression: worked numbers, NumPy, and what it converges to."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def test_quantile_huber_loss_of_worked_numbers():
    """Levels 1/4 and 3/4; errors target - prediction 0.5, 3 and -1.5, 1."""
    loss = losses.quantile_huber_loss([[0.5, 2.5]], [[1.0, 3.5]])
    expected = [
        (0.25 * 0.125 + 0.25 * 2.5) / 2,
        (0.25 * 1.0 + 0.75 * 0.5) / 2,
    ]
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)
    # Twice the scale of numbers and delta: twice the loss.
    loss = losses.quantile_huber_loss([[1.0, 5.0]], [[2.0, 7.0]], delta=2.0)
    np.testing.assert_allclose(loss, 2 * np.array([expected]), rtol=1e-6)


def test_quantiles_minimise_the_loss():
    """With a small delta, the gradient vanishes at the quantiles of the targets."""
    targets = np.linspace(0, 1, 1001, dtype=np.float32)
    predictions = tf.constant([0.125, 0.375, 0.625, 0.875])
    with tf.GradientTape() as tape:
        tape.watch(predictions)
        loss = losses.quantile_huber_loss(predictions, targets, delta=1e-4)
    np.testing.assert_allclose(tape.gradient(loss, predictions), np.zeros(4), atol=2e-3)


def test_gradient_of_the_quantile_huber_loss_of_several_critics():
    """Against -sum_j |tau_i - 1(u_ij < 0)| clip(u_ij, -1, 1) / M, in NumPy."""
    rng = np.random.default_rng(0)
    predictions = tf.constant(2 * rng.normal(size=[2, 3, 4]), tf.float32)
    targets = 2 * rng.normal(size=[3, 5]).astype(np.float32)
    upstream = rng.normal(size=[2, 3, 4]).astype(np.float32)
    with tf.GradientTape() as tape:
        tape.watch(predictions)
        loss = losses.quantile_huber_loss(predictions, targets)
    gradient = tape.gradient(loss, predictions, output_gradients=tf.constant(upstream))
    errors = targets[:, np.newaxis] - predictions.numpy()[..., np.newaxis]
    weights = np.abs(np.array([1, 3, 5, 7])[:, np.newaxis] / 8 - (errors < 0))
    expected = -upstream * (weights * np.clip(errors, -1, 1)).mean(axis=-1)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_the_quantile_loss_of_worked_numbers(delta):
    """Predictions 0 and 2 of the quantiles 0.2 and 0.9; targets 1 + 0.5 (0, 4)."""
    loss = losses.quantile([[0.0, 2.0]], [0.2, 0.9], [1.0], [0.5], [[0.0, 4.0]], delta)
    # u_ij = target_j - prediction_i: 1, 3 and -1, 1.
    if delta == 0:
        expected = (0.2 * 1 + 0.2 * 3) / 2 + (0.1 * 1 + 0.9 * 1) / 2
    else:
        # huber(1) = 0.375 and huber(3) = 1.375, each divided by 0.5.
        expected = (0.2 * 0.75 + 0.2 * 2.75) / 2 + (0.1 * 0.75 + 0.9 * 0.75) / 2
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)


def test_the_quantile_loss_has_the_gradient_of_the_predictions_alone():
    predictions, bootstrap = tf.Variable([[0.0, 2.0]]), tf.Variable([[0.0, 4.0]])
    with tf.GradientTape() as tape:
        loss = losses.quantile(predictions, [[0.2, 0.9]], [1.0], [0.5], bootstrap)
    gradients = tape.gradient(loss, [predictions, bootstrap])
    # The slope is -tau below a target, and 1 - tau above one.
    np.testing.assert_allclose(gradients[0], [[-0.2, (0.1 - 0.9) / 2]], rtol=1e-6)
    assert gradients[1] is None


def test_terminal_states_have_no_value():
    loss = losses.quantile([[1.0]], [0.5], [3.0], [0.0], [[np.inf]])
    np.testing.assert_array_equal(loss, [0.5 * 2])
