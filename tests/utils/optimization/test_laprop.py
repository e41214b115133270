"""LaProp, against the algorithm written out in NumPy, and adaptive clipping."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils.optimization import LaProp, optimizers

RNG = np.random.default_rng(0)
GRADIENTS = RNG.normal(size=[6, 3]) * [1.0, 1e-3, 100.0]


def by_hand(weights, rate, b1=0.9, b2=0.999):
    mean, square = np.zeros(3), np.zeros(3)
    for t, gradient in enumerate(GRADIENTS, 1):
        square = b2 * square + (1 - b2) * gradient**2
        normalized = gradient / np.sqrt(square / (1 - b2**t))
        mean = b1 * mean + (1 - b1) * normalized
        weights = weights - rate * mean / (1 - b1**t)
    return weights


@pytest.mark.parametrize("jit", [False, True])
def test_six_steps_are_those_of_the_algorithm(jit):
    variable = tf.Variable([1.0, -2.0, 3.0])
    adapter = optimizers.OptimizerAdapter(LaProp(0.1), [variable])

    @tf.function(autograph=False, jit_compile=jit)
    def step(gradient):
        adapter.apply([gradient])

    for gradient in GRADIENTS:
        step(tf.constant(gradient, tf.float32))
    expected = by_hand(np.array([1.0, -2.0, 3.0]), 0.1)
    np.testing.assert_allclose(variable, expected, rtol=1e-5)
    # Two slots and the counter.
    assert len(adapter.variables()) >= 3


def test_a_gradient_of_zero_moves_nothing():
    variable = tf.Variable([1.0, 2.0])
    adapter = optimizers.OptimizerAdapter(LaProp(0.1), [variable])
    adapter.apply([tf.zeros([2])])
    np.testing.assert_array_equal(variable, [1.0, 2.0])


def test_it_is_made_again_from_its_configuration():
    made = keras.optimizers.deserialize(
        keras.optimizers.serialize(LaProp(0.2, beta_1=0.5, epsilon=1e-8))
    )
    assert isinstance(made, LaProp)
    assert (float(made.learning_rate), made.beta_1, made.epsilon) == (
        pytest.approx(0.2),
        0.5,
        1e-8,
    )


def test_gradients_are_clipped_to_a_share_of_their_weights():
    variables = [tf.Variable([3.0, 4.0]), tf.Variable([0.0]), tf.Variable([1.0])]
    clip = optimizers.to_share_of_weights(variables, 0.3)
    gradients = [tf.constant([30.0, 40.0]), tf.constant([2.0]), None]
    found = clip(gradients)
    np.testing.assert_allclose(found[0], [0.9, 1.2], rtol=1e-6)
    np.testing.assert_allclose(found[1], [3e-4], rtol=1e-6)
    assert found[2] is None
    small = clip([tf.constant([0.3, 0.4]), tf.constant([0.0]), None])
    np.testing.assert_allclose(small[0], [0.3, 0.4], rtol=1e-6)
    assert optimizers.to_share_of_weights(variables, None) is None
