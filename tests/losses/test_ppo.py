"""The losses of PPO against numbers worked by hand and by NumPy."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import losses

ALL = [True] * 4


def test_the_objective_is_clipped_where_it_would_gain():
    ratio = np.float32([1.5, 1.5, 0.5, 0.5, 1.1])
    advantages = [1.0, -1.0, 1.0, -1.0, 2.0]
    loss = losses.clipped_surrogate(np.log(ratio), advantages, 0.2)
    np.testing.assert_allclose(loss, [-1.2, 1.5, -0.5, 0.8, -2.2], rtol=1e-6)
    plain = losses.clipped_surrogate(np.log(ratio), advantages)
    np.testing.assert_allclose(plain, [-1.5, 1.5, -0.5, 0.5, -2.2], rtol=1e-6)


def test_a_clipped_ratio_has_no_gradient():
    log_ratio = tf.Variable(np.log(np.float32([1.5, 1.5, 0.5, 1.1])))
    with tf.GradientTape() as tape:
        loss = losses.clipped_surrogate(log_ratio, [1.0, -1.0, -1.0, 2.0], 0.2)
    gradient = tape.gradient(loss, log_ratio)
    np.testing.assert_allclose(gradient, [0, 1.5, 0, -2.2], rtol=1e-6)


def test_the_larger_error_of_value_and_clipped_value_counts():
    values, returns = [3.0, 2.0, 0.0, 1.1], [2.0, 2.0, 2.0, 2.0]
    loss = losses.clipped_value_loss(values, returns, [1.0] * 4, 0.5)
    # Clipped they are 1.5, 1.5, 0.5 and 1.1.
    np.testing.assert_allclose(loss, [1, 0.25, 4, 0.81], rtol=1e-6)
    plain = losses.clipped_value_loss(values, returns)
    np.testing.assert_allclose(plain, [1, 0, 4, 0.81], rtol=1e-6)


def test_the_cutoff_penalty_is_quadratic_beyond_the_cutoff():
    penalties = [losses.kl_cutoff_penalty(kl, 0.02, 1000.0) for kl in (0.01, 0.05)]
    np.testing.assert_allclose(penalties, [0, 0.9], rtol=1e-5)


@pytest.mark.parametrize(
    ("mean_kl", "beta", "expected"),
    [
        (0.006, 2.0, 2.0 / 1.5),
        (0.0071, 2.0, 2.0),
        (0.0129, 2.0, 2.0),
        (0.014, 2.0, 3.0),
        (0.0, 1e-15, 1e-15),
        (1.0, 1e17, 1e17),
    ],
)
def test_beta_follows_the_divergence(mean_kl, beta, expected):
    adapted = losses.adapted_kl_beta(beta, mean_kl, target=0.01, tolerance=0.3)
    np.testing.assert_allclose(adapted, expected, rtol=1e-6)


def test_approx_kl_estimates_the_divergence_of_two_distributions():
    old, new = (
        tfp.distributions.Categorical(logits=logits)
        for logits in ([0.0, 1.0, -1.0], [0.5, 0.0, 0.0])
    )
    actions = tf.range(3)
    log_ratio = new.log_prob(actions) - old.log_prob(actions)
    estimate = tf.reduce_sum(old.prob(actions) * losses.approx_kl(log_ratio))
    np.testing.assert_allclose(estimate, old.kl_divergence(new), rtol=1e-5)


def test_the_clip_fraction_counts_steps_of_the_mask():
    log_ratio = np.log(np.float32([1.3, 1.1, 0.7, 5.0]))
    fraction = losses.clip_fraction(log_ratio, 0.2, [True, True, True, False])
    np.testing.assert_allclose(fraction, 2 / 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 2.0, 3.0, 6.0], 1), ([5.0] * 4, 0), ([-1.0, -2.0, -3.0, -6.0], -3)],
)
def test_explained_variance(values, expected):
    returns = [1.0, 2.0, 3.0, 6.0]
    found = losses.explained_variance(values, returns, ALL)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_explained_variance_leaves_out_masked_steps():
    mask = [True, True, True, False]
    found = losses.explained_variance([1.0, 2.0, 3.0, np.nan], [1.0, 2, 3, 9], mask)
    np.testing.assert_allclose(found, 1, rtol=1e-6)
    assert losses.explained_variance([1.0, 2.0, 3.0, 4.0], [2.0] * 4, ALL) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: losses.clipped_surrogate(x, y, 0.2),
        lambda x, y: losses.clipped_value_loss(x, y),
        lambda x, y: losses.clip_fraction(x, 0.2, y),
        lambda x, y: losses.explained_variance(x, x, y),
    ],
)
def test_nothing_is_broadcast(call):
    with pytest.raises(ValueError, match=r"got shape \(4, 1\), expected \(4,\)"):
        call(tf.zeros([4]), tf.zeros([4, 1]))
