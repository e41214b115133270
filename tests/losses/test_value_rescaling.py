"""R2D2's rescaled values and its loss of sequences."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def h(x):
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x


def inverse(y):
    low, high = np.full_like(y, -1e7), np.full_like(y, 1e7)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            np.where(h(middle) < y, middle, low),
            np.where(h(middle) < y, high, middle),
        )
    return low


def test_rescaling_and_its_inverse():
    x = np.array([-1e4, -3.0, -1e-3, 0.0, 1e-6, 8.0, 1e5])
    rescaled = losses.signed_hyperbolic(x)
    np.testing.assert_allclose(rescaled, h(x), rtol=1e-9)
    # sqrt(9) - 1 + 0.008.
    np.testing.assert_allclose(rescaled[5], 2.008, rtol=1e-12)
    np.testing.assert_allclose(losses.signed_parabolic(rescaled), x, rtol=1e-9)
    y = np.array([-50.0, 0.25, 700.0])
    np.testing.assert_allclose(losses.signed_parabolic(y), inverse(y), rtol=1e-6)


def test_float32_keeps_small_and_large_values():
    x = np.array([1e-6, 1e-3, 1.0, 1e6], np.float32)
    there_and_back = losses.signed_parabolic(losses.signed_hyperbolic(x))
    np.testing.assert_allclose(there_and_back, x, rtol=2e-6)


def test_loss_of_a_sequence_step_by_step():
    rng = np.random.default_rng(0)
    num_steps, batch, num_actions, n = 4, 3, 2, 2
    qs, targets = rng.normal(size=[2, num_steps + 1, batch, num_actions]) * 5
    actions = rng.integers(num_actions, size=[num_steps + 1, batch])
    rewards = rng.normal(size=[num_steps, batch]) * 10
    discounts = rng.uniform(size=[num_steps, batch])
    discounts[1, 0] = 0
    policy = rng.dirichlet(np.ones(num_actions), size=[num_steps + 1, batch])
    loss, extra = losses.transformed_n_step_loss(
        qs, targets, actions, rewards, discounts, policy, bootstrap_n=n
    )
    values = (policy * inverse(targets)).sum(axis=-1)
    expected = np.zeros([num_steps, batch])
    for t in range(num_steps):
        for b in range(batch):
            last = min(t + n, num_steps) - 1
            total = values[last + 1, b]
            for step in range(last, t - 1, -1):
                total = rewards[step, b] + discounts[step, b] * total
            expected[t, b] = qs[t, b, actions[t, b]] - h(total)
    np.testing.assert_allclose(extra.errors, expected, rtol=1e-6)
    chosen = np.take_along_axis(qs, actions[..., np.newaxis], axis=-1)[:-1, :, 0]
    np.testing.assert_allclose(extra.targets, chosen - expected, rtol=1e-6)
    np.testing.assert_allclose(loss, 0.5 * (expected**2).sum(axis=0), rtol=1e-6)


def test_logarithms_with_a_sign_and_their_inverse():
    # The numbers of rlax's test, and sizes that a logarithm of 1 + x alone would lose.
    x = np.float32([-2, -1, -0.5, 0, 0.5, 1, 2, 1e-6, -1e-6, 1e6])
    rescaled = losses.signed_logp1(x)
    exact = x.astype(float)
    np.testing.assert_allclose(
        rescaled, np.sign(exact) * np.log1p(np.abs(exact)), rtol=1e-6
    )
    np.testing.assert_allclose(losses.signed_expm1(rescaled), x, rtol=1e-5)
    np.testing.assert_allclose(losses.signed_logp1([np.e - 1, 1 - np.e]), [1, -1])


POINTS = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-4, -1e-4, 0.5, -0.5, 6.0, -6.0])
EPS = 1e-3
SLOPES = {
    "signed_hyperbolic": lambda size: 0.5 / np.sqrt(size + 1) + EPS,
    # The slope of the inverse is 1 / h' at h^-1.
    "signed_parabolic": lambda size: (
        1 / (0.5 / np.sqrt(inverse(size) + 1) + EPS)  # inverse(0) is 0 to 1e-15.
    ),
    "signed_logp1": lambda size: 1 / (1 + size),
    "signed_expm1": np.exp,
}


@pytest.mark.parametrize(
    ("name", "at_0"),
    [
        ("signed_hyperbolic", 0.501),
        ("signed_parabolic", 1 / 0.501),
        ("signed_logp1", 1.0),
        ("signed_expm1", 1.0),
    ],
)
def test_slopes_at_0_and_near_it(name, at_0):
    function, x = getattr(losses, name), tf.constant(POINTS)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    slopes = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(slopes[:4], at_0, rtol=1e-12)
    np.testing.assert_allclose(slopes, SLOPES[name](np.abs(POINTS)), rtol=1e-6)
    step = 1e-6  # Second derivatives jump at 0, so that the error is about a step.
    differences = (function(POINTS + step) - function(POINTS - step)) / (2 * step)
    np.testing.assert_allclose(slopes, differences, rtol=1e-5)
