"""Losses of value distributions: worked numbers, a loop in Python, properties."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


class Atoms(NamedTuple):
    """A distribution as the losses see it."""

    values: np.ndarray
    logits: tf.Tensor


def projected_one_by_one(z_p, p, z_q):
    """The projection of Bellemare et al. 2017: each atom to its two neighbours."""
    result = np.zeros([len(z_p), len(z_q)])
    for row, (atoms, probabilities) in enumerate(zip(z_p, p, strict=True)):
        for z, mass in zip(atoms, probabilities, strict=True):
            z = min(max(z, z_q[0]), z_q[-1])
            above = int(np.searchsorted(z_q, z))
            if z_q[above] == z:
                result[row, above] += mass
                continue
            gap = z_q[above] - z_q[above - 1]
            result[row, above - 1] += mass * (z_q[above] - z) / gap
            result[row, above] += mass * (z - z_q[above - 1]) / gap
    return result


def random_distribution(rng, shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


@pytest.mark.parametrize(
    ("z_p", "p", "z_q", "expected"),
    [
        # Atoms that lie on new ones keep their place.
        ([0, 1, 2], [0.2, 0.3, 0.5], [0, 1, 2], [0.2, 0.3, 0.5]),
        # Between two atoms: in inverse proportion to the distances.
        ([0.25, 1.5, 2], [0.4, 0.2, 0.4], [0, 1, 2], [0.3, 0.2, 0.5]),
        # Beyond the ends: to the first and the last.
        ([-9, 1, 9], [0.2, 0.3, 0.5], [0, 1, 2], [0.2, 0.3, 0.5]),
        # Distances that differ.
        ([1, 4], [0.5, 0.5], [0, 2, 10], [0.25, 0.625, 0.125]),
        # All atoms at one place, as after a termination.
        ([1.5, 1.5, 1.5], [0.2, 0.3, 0.5], [0, 1, 2], [0, 0.5, 0.5]),
        # A support of one atom takes everything.
        ([-1, 0, 7], [0.2, 0.3, 0.5], [3], [1.0]),
    ],
)
def test_projections_of_worked_numbers(z_p, p, z_q, expected):
    projected = losses.l2_project(np.array([z_p], np.float32), [p], np.float32(z_q))
    np.testing.assert_allclose(projected, [expected], atol=1e-6)


def test_projection_equals_a_loop_over_atoms():
    rng = np.random.default_rng(0)
    z_p, p = rng.normal(size=[7, 11]) * 4, random_distribution(rng, [7, 11])
    z_p[0, :3] = [-2.5, 0.0, 5.0]
    for z_q in (np.linspace(-2.5, 5, 4), np.sort(rng.normal(size=9))):
        projected = losses.l2_project(z_p, p, z_q)
        np.testing.assert_allclose(
            projected, projected_one_by_one(z_p, p, z_q), atol=1e-12
        )


def test_projection_keeps_mass_and_inside_the_support_the_mean():
    rng = np.random.default_rng(1)
    p = random_distribution(rng, [50, 21])
    z_q = np.linspace(-3, 7, 13)
    inside = rng.uniform(-3, 7, size=[50, 21])
    projected = losses.l2_project(inside, p, z_q).numpy()
    np.testing.assert_allclose(projected.sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(projected @ z_q, (p * inside).sum(axis=-1), rtol=1e-9)
    outside = losses.l2_project(10 * inside, p, z_q).numpy()
    np.testing.assert_allclose(outside.sum(axis=-1), 1, rtol=1e-12)
    assert (outside >= 0).all()


@pytest.mark.parametrize(
    ("shape_p", "shape_q"),
    [((2, 3, 5), (3, 4)), ((2, 1, 5), (3, 4)), ((2, 3, 5), (4,))],
)
def test_projection_onto_a_support_of_each_axis(shape_p, shape_q):
    rng = np.random.default_rng(2)
    z_p, p = rng.normal(size=shape_p), random_distribution(rng, shape_p)
    z_q = np.sort(rng.normal(size=shape_q))
    projected = losses.l2_project(z_p, p, z_q)
    assert projected.shape == (2, 3, 4)
    for axis in range(3):
        expected = projected_one_by_one(
            z_p[:, axis % shape_p[1]],
            p[:, axis % shape_p[1]],
            z_q[axis] if len(shape_q) > 1 else z_q,
        )
        np.testing.assert_allclose(projected[:, axis], expected, atol=1e-12)


def test_categorical_of_worked_numbers():
    """Atoms 0, 1, 2; gamma 1/2; the second example terminates."""
    values = np.array([0.0, 1.0, 2.0], np.float32)
    q_tm1 = Atoms(values, tf.math.log([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]]))
    q_t = Atoms(values, tf.math.log([[0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]) + 3)
    loss = losses.categorical(q_tm1, [0.5, 1.25], [0.5, 0.0], q_t)
    # 0.5 + z/2 = 0.5, 1, 1.5 with 0.2, 0.2, 0.6: targets 0.1, 0.6, 0.3. After the
    # termination 1.25 alone: 0, 0.75, 0.25.
    expected = [
        -(0.1 * np.log(0.5) + 0.6 * np.log(0.25) + 0.3 * np.log(0.25)),
        -(0.75 * np.log(0.3) + 0.25 * np.log(0.5)),
    ]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_clipped_probabilities_count_as_the_least_and_get_no_gradient():
    logits = tf.math.log(tf.constant([[0.9, 0.09, 0.01]]))
    target = tf.constant([[0.5, 0.2, 0.3]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = losses.clipped_cross_entropy(target, logits, 0.05)
    expected = -(0.5 * np.log(0.9) + 0.2 * np.log(0.09) + 0.3 * np.log(0.05))
    np.testing.assert_allclose(loss, [expected], rtol=1e-5)
    # d/dlogits of -sum over the first two of target log p: p * 0.7 - target.
    gradient = [[0.9 * 0.7 - 0.5, 0.09 * 0.7 - 0.2, 0.01 * 0.7]]
    np.testing.assert_allclose(tape.gradient(loss, logits), gradient, rtol=1e-4)


def test_the_gradient_is_that_of_the_prediction_alone():
    """It is softmax - target, and nothing for the target's logits."""
    values = np.linspace(-1, 1, 3, dtype=np.float32)
    predicted, bootstrap = tf.Variable(tf.zeros([1, 3])), tf.Variable(tf.ones([1, 3]))
    with tf.GradientTape() as tape:
        loss = losses.categorical(
            Atoms(values, predicted), [1.0], [1.0], Atoms(values, bootstrap)
        )
    gradients = tape.gradient(loss, [predicted, bootstrap])
    # 1 + z = 0, 1, 2 -> atoms 0 and 1 (twice).
    np.testing.assert_allclose(gradients[0], [[1 / 3, 0, 1 / 3 - 2 / 3]], atol=1e-6)
    assert gradients[1] is None


def test_multiaxis_categorical_is_categorical_of_each_axis():
    rng = np.random.default_rng(3)
    values = np.sort(rng.normal(size=[3, 5]))
    logits_tm1, logits_t = rng.normal(size=[2, 4, 3, 5])
    rewards, discounts = rng.normal(size=[4, 3]), rng.uniform(size=[4, 1])
    loss = losses.multiaxis_categorical(
        Atoms(values, logits_tm1), rewards, discounts, Atoms(values, logits_t)
    )
    expected = [
        losses.categorical(
            Atoms(values[i], logits_tm1[:, i]),
            rewards[:, i],
            discounts[:, 0],
            Atoms(values[i], logits_t[:, i]),
        )
        for i in range(3)
    ]
    np.testing.assert_allclose(loss, np.stack(expected, axis=1), rtol=1e-6)


def test_columns_of_rewards_are_not_broadcast():
    q = Atoms(np.arange(3.0), np.zeros([4, 3]))
    with pytest.raises(ValueError, match=r"r_t: got shape \(4, 1\), expected \(4,\)"):
        losses.categorical(q, np.zeros([4, 1]), np.zeros([4, 1]), q)


def test_the_target_is_projected_onto_the_atoms_of_the_prediction():
    """1 + z = 1, 2, 3 on the atoms 0, 2, 4: a half of the first each to 0 and 2."""
    bootstrap = Atoms(np.float32([0, 1, 2]), tf.math.log([[0.5, 0.25, 0.25]]))
    predicted = Atoms(np.float32([0, 2, 4]), tf.math.log([[0.2, 0.5, 0.3]]))
    expected = -(0.25 * np.log(0.2) + 0.625 * np.log(0.5) + 0.125 * np.log(0.3))
    for loss in (losses.categorical, losses.multiaxis_categorical):
        np.testing.assert_allclose(
            loss(predicted, [1.0], [1.0], bootstrap), [expected], rtol=1e-5
        )
