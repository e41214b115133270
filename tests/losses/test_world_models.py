"""Losses of world models, against SciPy and NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfrl import losses

RNG = np.random.default_rng(4)
POSTERIOR, PRIOR = (
    special.log_softmax(2 * RNG.normal(size=[5, 3, 4]), -1) for _ in "12"
)


def divergences(p, q):
    return special.rel_entr(np.exp(p), np.exp(q)).sum(axis=(-2, -1))


@pytest.mark.parametrize("jit", [False, True])
def test_a_hundredth_of_the_classes_is_uniform(jit):
    logits = 30 * RNG.normal(size=[6, 4])
    mixed = tf.function(losses.mixed_with_uniform, jit_compile=jit)
    found = np.exp(mixed(tf.constant(logits, tf.float32)))
    expected = 0.99 * special.softmax(logits, -1) + 0.01 / 4
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-5)


def test_the_divergence_is_scipys():
    found = losses.categorical_kl(
        tf.constant(POSTERIOR, tf.float32), tf.constant(PRIOR, tf.float32)
    )
    np.testing.assert_allclose(found, divergences(POSTERIOR, PRIOR), rtol=1e-5)
    np.testing.assert_allclose(losses.categorical_kl(PRIOR, PRIOR), 0.0, atol=1e-12)


def test_each_divergence_has_the_gradient_of_one_side():
    posterior, prior = (tf.constant(x, tf.float32) for x in (POSTERIOR, PRIOR))
    free = float(np.sort(divergences(POSTERIOR, PRIOR))[1:3].mean())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([posterior, prior])
        # Normalized again, so that a step keeps them normalized.
        both = losses.balanced_kl(
            tf.nn.log_softmax(posterior), tf.nn.log_softmax(prior), free
        )
    expected = np.maximum(divergences(POSTERIOR, PRIOR), free)
    for loss, trained, other in zip(
        both, (prior, posterior), (posterior, prior), strict=True
    ):
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        assert tape.gradient(loss, other) is None
        slope = tape.gradient(loss, trained).numpy()
        moves = np.abs(slope).sum(axis=(1, 2)) > 0
        np.testing.assert_array_equal(moves, divergences(POSTERIOR, PRIOR) > free)
    # Of the dynamics: the prior's probabilities minus the posterior's.
    slope = tape.gradient(both[0], prior).numpy()
    above = divergences(POSTERIOR, PRIOR) > free
    difference = np.exp(PRIOR) - np.exp(POSTERIOR)
    np.testing.assert_allclose(slope[above], difference[above], atol=1e-6)


def test_symlog_loss_by_hand():
    target = np.array([[0.0, np.e - 1], [1 - np.e**2, 3.0]])
    prediction = np.array([[0.5, 1.0], [-1.0, 0.0]])
    found = losses.symlog_loss(
        tf.constant(prediction, tf.float32), tf.constant(target, tf.float32)
    )
    np.testing.assert_allclose(found, [0.25, 1 + np.log(4) ** 2], rtol=1e-6)


@pytest.mark.parametrize("shape", [[1], [7], [20, 13]])
def test_the_range_is_numpys(shape):
    values = RNG.normal(size=shape)
    found = losses.percentile_range(tf.constant(values, tf.float32))
    expected = np.percentile(values, 95) - np.percentile(values, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_actors_loss_has_the_gradient_of_its_probabilities():
    log_prob, advantage, entropy = (
        tf.constant(RNG.normal(size=[6]), tf.float32) for _ in "123"
    )
    with tf.GradientTape() as tape:
        tape.watch([log_prob, advantage, entropy])
        loss = losses.imagined_actor_loss(log_prob, advantage, entropy, 0.3)
    np.testing.assert_allclose(
        loss, -advantage.numpy() * log_prob.numpy() - 0.3 * entropy.numpy(), rtol=1e-5
    )
    slopes = tape.gradient(loss, [log_prob, advantage, entropy])
    np.testing.assert_allclose(slopes[0], -advantage.numpy(), rtol=1e-6)
    assert slopes[1] is None
    np.testing.assert_allclose(slopes[2], -0.3, rtol=1e-6)
