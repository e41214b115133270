import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def test_conservative_penalty_of_worked_numbers():
    """log(e^1 / 0.5 + e^3 / 0.25) - 2 and, at twice the temperature, half one."""
    q = np.array([[1], [3]], np.float32)
    log_p = np.log(np.array([[0.5], [0.25]], np.float32))
    penalty = losses.conservative_penalty([2.0], q, log_p)
    np.testing.assert_allclose(penalty, [np.log(2 * np.e + 4 * np.e**3) - 2], rtol=1e-6)
    penalty = losses.conservative_penalty([2.0], q, log_p, temperature=2.0)
    expected = np.log(2 * np.e**2 + 4 * np.e**6) / 2 - 2
    np.testing.assert_allclose(penalty, [expected], rtol=1e-6)


def test_conservative_penalty_estimates_an_integral():
    """Of exp(Q) with Q(a) = a over [-2, 2], from uniform actions: 2 sinh 2."""
    actions = np.linspace(-2, 2, 10_001, dtype=np.float32)[:, np.newaxis]
    penalty = losses.conservative_penalty(
        [0.0], actions, np.full_like(actions, -np.log(4))
    )
    np.testing.assert_allclose(
        penalty - np.log(len(actions)), [np.log(2 * np.sinh(2))], rtol=1e-3
    )


def test_conservative_penalty_of_all_discrete_actions():
    """log(e^1 + e^3) - 3 and log(e^0 + e^0) - 0, of two actions in two states."""
    q = np.array([[1, 0], [3, 0]], np.float32)
    penalty = losses.conservative_penalty([3.0, 0.0], q)
    expected = [np.log(np.e + np.e**3) - 3, np.log(2)]
    np.testing.assert_allclose(penalty, expected, rtol=1e-6)


def test_conservative_penalty_refuses_other_shapes():
    with pytest.raises(ValueError, match="log_densities"):
        losses.conservative_penalty(tf.zeros([3]), tf.zeros([4, 3]), tf.zeros([4]))
    with pytest.raises(ValueError, match="data_q"):
        losses.conservative_penalty(tf.zeros([3]), tf.zeros([3, 4]))


@pytest.mark.parametrize(("expectile", "best"), [(0.5, 2.0), (0.75, 3.0)])
def test_the_minimum_of_the_expectile_loss(expectile, best):
    """Targets 0 and 4: (1 - e) (v - 0) = e (4 - v), so v = 4 e."""
    errors = np.array([[0.0], [4.0]], np.float32) - np.linspace(0, 4, 401, dtype="f")
    totals = tf.reduce_sum(losses.expectile_loss(errors, expectile), axis=0)
    np.testing.assert_array_equal(np.argmin(totals) / 100, best)


def test_advantage_weighted_loss():
    """Weights e^(3 * 0.5), clipped 100, and e^-3; none of them infinite."""
    loss = losses.advantage_weighted_loss([-1.0, 2.0, 0.5], [0.5, 1e6, -1.0], 3.0, 100)
    np.testing.assert_allclose(loss, [np.exp(1.5), -200, -np.exp(-3) / 2], rtol=1e-5)


def test_gradient_similarity_is_the_sum_over_all_pairs():
    gradients = np.random.default_rng(0).normal(size=[4, 3, 2])
    gradients[1, 2] = 0
    expected = np.zeros(3)
    for i, j in np.ndindex(4, 4):
        for b in range(3):
            sizes = np.linalg.norm(gradients[[i, j], b], axis=1)
            if i != j and sizes.all():
                product = gradients[i, b] @ gradients[j, b]
                expected[b] += product / sizes.prod() / 3
    found = losses.gradient_similarity(gradients.astype(np.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_equal_gradients_have_the_greatest_similarity():
    found = losses.gradient_similarity(tf.ones([4, 1, 2]))
    np.testing.assert_allclose(found, [4.0], rtol=1e-6)


def test_penalized_value():
    found = losses.penalized_value([1.0, 2.0], [0.5, 4.0], 0.1)
    np.testing.assert_allclose(found, [0.95, 1.6], rtol=1e-6)
