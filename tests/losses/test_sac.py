import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def test_soft_value():
    value = losses.soft_value([3.0, 1.0], [-2.0, 0.5], 0.1)
    np.testing.assert_allclose(value, [3.2, 0.95], rtol=1e-6)
    loss = losses.sac_actor_loss([3.0, 1.0], [-2.0, 0.5], 0.1)
    np.testing.assert_allclose(loss, [-3.2, -0.95], rtol=1e-6)


def test_soft_value_refuses_other_shapes():
    with pytest.raises(ValueError, match="log_prob"):
        losses.soft_value(tf.zeros([3]), tf.zeros([3, 1]), 0.1)


def test_expected_soft_value():
    """Probabilities 1/4, 3/4: 1/4 * 8 + 3/4 * 4 + 0.5 * entropy."""
    probs = np.array([[0.25, 0.75]], np.float32)
    entropy = -(probs * np.log(probs)).sum()
    value = losses.expected_soft_value([[8.0, 4.0]], np.log(probs), 0.5)
    np.testing.assert_allclose(value, [5 + 0.5 * entropy], rtol=1e-6)
    np.testing.assert_allclose(losses.entropy_of(np.log(probs)), [entropy], rtol=1e-6)


def test_impossible_actions_do_not_count_and_give_no_nan():
    logits = tf.constant([[0.0, tf.float32.min, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        log_probs = tf.nn.log_softmax(logits)
        value = losses.expected_soft_value([[1.0, 1e30, 3.0]], log_probs, 10.0)
    np.testing.assert_allclose(value, [2 + 10 * np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(
        tape.gradient(value, logits), [[-0.5, 0.0, 0.5]], atol=1e-5
    )


def test_best_policy_of_the_expected_soft_value_is_the_softmax():
    """Its value is alpha log sum exp(q / alpha), and its gradient vanishes."""
    q, alpha = np.array([1.0, 2.0, -1.0], np.float32), 0.7
    logits = tf.constant(q / alpha)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = losses.expected_soft_value(q, tf.nn.log_softmax(logits), alpha)
    np.testing.assert_allclose(value, alpha * np.log(np.exp(q / alpha).sum()), 1e-6)
    np.testing.assert_allclose(tape.gradient(value, logits), [0, 0, 0], atol=1e-5)


@pytest.mark.parametrize(("use_log_alpha", "factor"), [(True, -1.5), (False, 0.22313)])
def test_temperature_loss(use_log_alpha, factor):
    log_alpha = tf.constant(-1.5)
    with tf.GradientTape() as tape:
        tape.watch(log_alpha)
        loss = losses.temperature_loss(log_alpha, [2.0, -4.0], -1.0, use_log_alpha)
    np.testing.assert_allclose(loss, [3 * factor, -3 * factor], rtol=1e-5)
    # The entropies are above the target by 0 in the mean.
    np.testing.assert_allclose(tape.gradient(loss, log_alpha), 0, atol=1e-6)


def test_too_little_entropy_raises_the_temperature():
    log_alpha = tf.constant(0.0)
    for use_log_alpha in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(log_alpha)
            loss = losses.temperature_loss(log_alpha, -3.0, -1.0, use_log_alpha)
        assert tape.gradient(loss, log_alpha) == -2


def test_minimum_of_subset():
    q = np.array([[5.0, 0.0], [1.0, 7.0], [3.0, 2.0]])
    noise = [0.9, 0.1, 0.5]
    for size, expected in ((1, [5, 0]), (2, [3, 0]), (3, [1, 0])):
        np.testing.assert_array_equal(
            losses.minimum_of_subset(q, noise, size), expected
        )


def test_truncated_mixture_drops_the_largest_of_all():
    """One critic's quantiles are all small, so the other loses more than its share."""
    quantiles = np.array([[[9.0, 7.0, 8.0]], [[1.0, 3.0, 2.0]]])
    np.testing.assert_array_equal(
        losses.truncated_mixture(quantiles, 1), [[1, 2, 3, 7]]
    )
    np.testing.assert_array_equal(losses.truncated_mixture(quantiles, 2), [[1, 2]])
