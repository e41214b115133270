"""Two-hot probabilities of bins, against NumPy's interpolation in float64."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfrl.losses import TwoHot

LOSS = TwoHot(-3.0, 3.0, 7)
BINS = np.array([-(np.e**3), -(np.e**2), -np.e, -1, np.e, np.e**2, np.e**3])
BINS = np.where(BINS < 0, BINS + 1, BINS - 1)
# On a bin, between bins, and beyond the last ones.
TARGETS = np.array([0.0, np.e - 1, 0.5, -1.2, 10.0, 40.0, -99.0])


def test_the_bins_are_powers_of_e():
    np.testing.assert_allclose(LOSS.bins, BINS, rtol=1e-6)
    assert LOSS.bins.dtype == np.float32


def test_a_target_is_the_mean_of_at_most_two_bins():
    found = LOSS.probabilities(tf.constant(TARGETS, tf.float32)).numpy()
    # Column k of the identity is 1 at bin k, and is interpolated between the bins.
    rows = [np.interp(TARGETS, BINS, column) for column in np.eye(7)]
    np.testing.assert_allclose(found, np.transpose(rows), atol=1e-6)
    assert ((found > 0).sum(axis=-1) <= 2).all()
    clipped = np.clip(TARGETS, BINS[0], BINS[-1])
    np.testing.assert_allclose(found @ BINS, clipped, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_the_loss_is_the_cross_entropy(jit):
    logits = np.random.default_rng(0).normal(size=(7, 7))
    found = tf.function(LOSS, jit_compile=jit)(
        tf.constant(TARGETS, tf.float32), tf.constant(logits, tf.float32)
    )
    rows = np.transpose([np.interp(TARGETS, BINS, column) for column in np.eye(7)])
    expected = -np.sum(rows * special.log_softmax(logits, -1), -1)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_only_predictions_get_a_gradient():
    target, logits = tf.constant([[0.3]]), tf.zeros([1, 1, 7])
    with tf.GradientTape() as tape:
        tape.watch([target, logits])
        loss = LOSS(target, logits)
    of_target, of_logits = tape.gradient(loss, [target, logits])
    assert of_target is None
    np.testing.assert_allclose(
        of_logits, 1 / 7 - LOSS.probabilities(target).numpy(), atol=1e-6
    )


@pytest.mark.parametrize("num_bins", [64, 65, 255])
def test_equal_logits_have_the_value_0_though_the_bins_are_large(num_bins):
    loss = TwoHot(-20.0, 20.0, num_bins)
    assert loss.value(tf.ones([2, num_bins])).numpy().tolist() == [0.0, 0.0]
    logits = tf.constant(np.random.default_rng(1).normal(size=[3, num_bins]))
    expected = special.softmax(logits, -1) @ loss.bins.astype(np.float64)
    np.testing.assert_allclose(loss.value(logits), expected, rtol=1e-6)


def test_wrong_numbers_and_shapes_are_refused():
    for low, high, num_bins in ((1.0, 1.0, 5), (0.0, 1.0, 1)):
        with pytest.raises(ValueError, match="low < high and at least 2 bins"):
            TwoHot(low, high, num_bins)
    with pytest.raises(ValueError, match="one_logit"):
        LOSS(tf.zeros([2]), tf.zeros([3, 7]))
    for wrong in (1, 6):  # Neither is broadcast.
        with pytest.raises(ValueError, match="bins"):
            LOSS(tf.zeros([3]), tf.zeros([3, wrong]))
    with pytest.raises(ValueError, match="bins"):
        LOSS.value(tf.zeros([2, 6]))


# As users compile: tests have a lower level of optimization, at which nothing is fused.
OPTIMIZED = """
import tensorflow as tf
from tfrl.losses import TwoHot

logits = tf.repeat(tf.random.stateless_normal([40, 1], [1, 2]), 255, axis=1)
value = tf.function(TwoHot(-20.0, 20.0, 255).value, jit_compile=True)
print(float(tf.reduce_max(abs(value(logits)))))
"""


@pytest.mark.slow  # Its process is new.
def test_equal_logits_are_exactly_0_when_products_are_fused():
    # The outer bins are near 5e8: a rest of their rounding would be 0.2.
    assert (
        subprocess.run(
            [sys.executable, "-c", OPTIMIZED],
            env={**os.environ, "XLA_FLAGS": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        == "0.0"
    )


def test_equal_logits_of_uneven_bins_are_their_mean():
    bins = TwoHot(-1.0, 3.0, 4)
    value = bins.value(tf.ones([3, 4]))
    np.testing.assert_allclose(value, np.full(3, np.mean(bins.bins)), rtol=1e-5)


def test_values_of_logits_near_0_are_those_of_float64():
    bins = TwoHot(-20.0, 20.0, 255)
    rng = np.random.default_rng(2)
    for size in (1e-8, 1e-5, 1e-2, 1.0, 30.0):
        logits = (size * rng.normal(size=[50, 255])).astype(np.float32)
        chances = special.softmax(logits.astype(np.float64), axis=-1)
        expected = np.sum(chances * bins.bins.astype(np.float64), axis=-1)
        atol = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(bins.value(logits), expected, rtol=1e-3, atol=atol)
    far = tf.constant([[200.0, *[0.0] * 253, -200.0], [-200.0, *[0.0] * 253, 200.0]])
    outer = bins.bins[0]
    np.testing.assert_allclose(bins.value(far), [outer, -outer], rtol=1e-6)
