"""The functions of MPO's losses against SciPy's densities and integrals."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import optimize, special, stats

from tfrl.losses import mpo

VALUES = np.array([[1.0, -2.0], [3.0, 0.5], [0.0, 4.0]], np.float32)


def test_weights_are_a_softmax_over_the_actions():
    weights = mpo.mpo_weights(VALUES, 2.0)
    np.testing.assert_allclose(weights, special.softmax(VALUES / 2, axis=0), rtol=1e-5)
    objectives = mpo.mpo_weights(np.stack([VALUES, -VALUES], axis=-1), [2.0, 0.5])
    np.testing.assert_allclose(objectives[..., 0], weights, rtol=1e-5)
    np.testing.assert_allclose(
        objectives[..., 1], special.softmax(-2 * VALUES, axis=0), rtol=1e-5
    )


def test_temperature_loss():
    loss = mpo.mpo_temperature_loss(VALUES, 2.0, 0.1)
    expected = 2 * (0.1 + np.log(np.exp(VALUES / 2).mean(axis=0)))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_at_the_best_temperature_the_weights_use_the_whole_divergence():
    """The dual function is least where the constraint holds with equality."""
    values = VALUES[:, :1]
    best = optimize.minimize_scalar(
        lambda t: float(mpo.mpo_temperature_loss(values, np.float32(t), 0.1)[0]),
        bounds=(0.5, 50.0),
        method="bounded",
    ).x
    kl = mpo.weights_kl(mpo.mpo_weights(values, np.float32(best)))
    np.testing.assert_allclose(kl, [0.1], rtol=1e-2)


def test_divergence_of_weights():
    weights = np.array([[0.5, 1 / 3], [0.25, 1 / 3], [0.25, 1 / 3]], np.float32)
    expected = stats.entropy(weights, np.full([3, 2], 1 / 3))
    np.testing.assert_allclose(mpo.weights_kl(weights), expected, atol=1e-6)


def test_actions_outside_of_the_range_cost_their_distance():
    actions = [[[0.5, -1.0]], [[1.5, 0.0]], [[4.0, -5.0]]]
    np.testing.assert_allclose(
        mpo.out_of_bounds_value(actions), [[0.0], [-0.5], [-5.0]], rtol=1e-6
    )


def test_weighted_cross_entropy():
    rng = np.random.default_rng(0)
    actions = rng.normal(size=[3, 2, 4]).astype(np.float32)
    weights = special.softmax(VALUES, axis=0)
    mean, stddev = (
        rng.uniform(0.5, 1, size=[2, 4]).astype(np.float32) for _ in range(2)
    )
    log_density = stats.norm.logpdf(actions, mean, stddev).sum(-1)
    np.testing.assert_allclose(
        mpo.weighted_cross_entropy(actions, weights, mean, stddev),
        -(weights * log_density).sum(0),
        rtol=1e-5,
    )


def numerical_kl(one, other):
    """The integral of p log(p / q) for two normal densities of SciPy."""
    x = np.linspace(-30, 30, 60_001)
    log_p, log_q = one.logpdf(x), other.logpdf(x)
    return np.trapezoid(np.exp(log_p) * (log_p - log_q), x)


def test_divergences_are_those_of_the_online_policy_from_the_target():
    mean, stddev, target_mean, target_stddev = 0.5, 2.0, -1.0, 0.7
    target = stats.norm(target_mean, target_stddev)
    np.testing.assert_allclose(
        mpo.kl_of_means(target_mean, target_stddev, mean),
        numerical_kl(target, stats.norm(mean, target_stddev)),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        mpo.kl_of_stddevs(target_stddev, stddev),
        numerical_kl(target, stats.norm(target_mean, stddev)),
        rtol=1e-5,
    )


def test_the_penalty_trains_the_policy_and_the_dual_loss_alpha():
    kl = tf.constant([[0.3, 0.1], [0.5, 0.0]])
    alpha = tf.constant([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([kl, alpha])
        penalty = mpo.kl_penalty(kl, alpha)
        loss = mpo.kl_dual_loss(kl, alpha, 0.2)
    np.testing.assert_allclose(penalty, [0.9, 1.0], rtol=1e-6)
    np.testing.assert_allclose(loss, [0.1, 0.0], atol=1e-6)
    np.testing.assert_array_equal(tape.gradient(penalty, kl), [[2, 3], [2, 3]])
    assert tape.gradient(penalty, alpha) is None
    # Descent raises alpha where the divergence is above 0.2.
    np.testing.assert_allclose(tape.gradient(loss, alpha), [-0.4, 0.3], rtol=1e-5)
    assert tape.gradient(loss, kl) is None


def test_a_dual_variable_is_a_softplus():
    np.testing.assert_allclose(
        mpo.dual_of([0.0, 10.0, -18.0]),
        [np.log(2), 10.0000454, np.log1p(np.exp(-18)) + 1e-8],
        rtol=1e-6,
    )


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="weights: got rank 3"):
        mpo.weighted_cross_entropy(
            tf.zeros([3, 2, 4]), tf.zeros([3, 2, 1]), tf.zeros([2, 4]), tf.ones([2, 4])
        )
    with pytest.raises(ValueError, match="mean: got shape"):
        mpo.weighted_cross_entropy(
            tf.zeros([3, 2, 4]), tf.zeros([3, 2]), tf.zeros([4, 2]), tf.ones([2, 4])
        )
