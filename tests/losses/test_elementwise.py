"""Elementwise losses."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def test_huber_is_quadratic_then_linear():
    loss = losses.huber_loss(tf.constant([-3.0, -1.0, 0.0, 0.5, 2.0]))
    np.testing.assert_array_equal(loss, [2.5, 0.5, 0.0, 0.125, 1.5])


def test_huber_with_delta_equals_keras():
    error = np.linspace(-5, 5, 21).astype(np.float32)[:, np.newaxis]
    keras_huber = tf.keras.losses.Huber(delta=2.0, reduction="none")
    np.testing.assert_allclose(
        losses.huber_loss(error[:, 0], delta=2.0),
        keras_huber(np.zeros_like(error), error),
        rtol=1e-6,
    )


def test_huber_gradient_is_the_clipped_error():
    error = tf.constant([-3.0, -0.5, 0.0, 0.5, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(error)
        loss = losses.huber_loss(error)
    np.testing.assert_array_equal(tape.gradient(loss, error), [-1, -0.5, 0, 0.5, 1])


def test_half_of_the_squared_difference_has_the_error_as_its_gradient():
    x, y = tf.constant([-3.0, 2.0]), tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = losses.half_squared_difference(x, y)
    np.testing.assert_array_equal(loss, [8, 0.5])
    np.testing.assert_array_equal(tape.gradient(loss, x), [-4, 1])


def test_squared_loss_has_no_half():
    np.testing.assert_array_equal(losses.squared_loss(tf.constant([-3.0, 2.0])), [9, 4])


def test_huber_as_acme_spells_it():
    # 2^2 / 2 inside, and 3 (4 - 3 / 2) outside.
    np.testing.assert_array_equal(losses.huber([2.0, -4.0], 3.0), [2.0, 7.5])
    np.testing.assert_array_equal(losses.huber([2.0, -4.0], 0.0), [0.0, 0.0])
    with pytest.raises(ValueError, match="quadratic_linear_boundary: got -1"):
        losses.huber([2.0], -1.0)
