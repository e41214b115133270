"""HL-Gauss, against SciPy's normal distribution in float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tfrl.losses import HlGauss

LOSS = HlGauss(-2.0, 3.0, 10, smoothing=0.75)


def masses(target, loss):
    """The probabilities of the bins, as the paper's equations have them."""
    edges = np.linspace(loss.low, loss.high, loss.num_bins + 1)
    width = (loss.high - loss.low) / loss.num_bins
    target = np.clip(np.asarray(target, np.float64), loss.low, loss.high)
    below = stats.norm.cdf(edges, target[..., np.newaxis], loss.smoothing * width)
    return np.diff(below) / (below[..., -1:] - below[..., :1])


@pytest.mark.parametrize("jit", [False, True])
def test_the_loss_is_the_cross_entropy_to_a_smoothed_target(jit):
    random = np.random.default_rng(0)
    # The last two are beyond the bins.
    target = np.array([-2.0, -0.3, 0.0, 2.9, 7.0, -9.0])
    logits = random.normal(size=(6, 10))
    found = tf.function(LOSS, jit_compile=jit)(
        tf.constant(target, tf.float32), tf.constant(logits, tf.float32)
    )
    expected = -np.sum(masses(target, LOSS) * special.log_softmax(logits, -1), -1)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_a_target_far_inside_is_the_value_of_its_own_distribution():
    target = np.linspace(-0.5, 1.5, 9).reshape([3, 3])
    probabilities = LOSS.probabilities(tf.constant(target, tf.float32))
    np.testing.assert_allclose(probabilities, masses(target, LOSS), atol=1e-6)
    value = LOSS.value(tf.math.log(probabilities + 1e-30))
    np.testing.assert_allclose(value, target, atol=1e-3)


def test_only_predictions_get_a_gradient():
    target, logits = tf.constant([0.3]), tf.zeros([1, 10])
    with tf.GradientTape() as tape:
        tape.watch([target, logits])
        loss, error = LOSS.errors(target, logits)
    np.testing.assert_allclose(error, [-0.2], atol=1e-6)
    of_target, of_logits = tape.gradient(loss, [target, logits])
    assert of_target is None
    # The softmax minus the target's probabilities.
    np.testing.assert_allclose(of_logits, 0.1 - masses([0.3], LOSS), atol=1e-6)


def test_wrong_numbers_and_shapes_are_refused():
    for low, high, num_bins, smoothing in (
        (1.0, 1.0, 5, 0.75),
        (0.0, 1.0, 1, 0.75),
        (0.0, 1.0, 5, 0.0),
    ):
        with pytest.raises(ValueError, match="HlGauss: expected low < high"):
            HlGauss(low, high, num_bins, smoothing)
    with pytest.raises(ValueError, match="one_logit"):
        LOSS(tf.zeros([3]), tf.zeros([10]))
    for wrong in (1, 6):  # Neither is broadcast.
        with pytest.raises(ValueError, match="bins"):
            LOSS(tf.zeros([3]), tf.zeros([3, wrong]))
    with pytest.raises(ValueError, match="bins"):
        LOSS.value(tf.zeros([3, 9]))
