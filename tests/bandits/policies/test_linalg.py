"""Inverses by Cholesky factors, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.bandits.policies import linalg


def _positive(size, seed=0, dtype=np.float64):
    a = np.random.default_rng(seed).normal(size=[size, size]).astype(dtype)
    return a @ a.T + np.eye(size, dtype=dtype)


@pytest.mark.parametrize("columns", [1, 7])
def test_a_solution_does_not_depend_on_the_other_columns(columns):
    a = _positive(5, dtype=np.float32)
    b = np.random.default_rng(1).normal(size=[5, 7]).astype(np.float32)
    found = linalg.conjugate_gradient(tf.constant(a), tf.constant(b[:, :columns]))
    np.testing.assert_allclose(found, np.linalg.solve(a, b[:, :columns]), rtol=1e-3)


def test_rows_that_are_added_change_the_inverse_by_woodburys_identity():
    a, u = _positive(4), np.random.default_rng(1).normal(size=[3, 4])
    inverse = np.linalg.inv(a)
    change = linalg.update_inverse(tf.constant(inverse), tf.constant(u))
    np.testing.assert_allclose(inverse + change, np.linalg.inv(a + u.T @ u))
    none = linalg.update_inverse(tf.constant(inverse), tf.zeros([0, 4], tf.float64))
    np.testing.assert_array_equal(none, 0.0)


def test_rows_of_several_models_are_added_in_turn():
    matrices = np.stack([_positive(3, seed) for seed in range(2)])
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=[5, 3]), rng.uniform(size=5)
    models = np.array([0, 1, 1, 0, 1])
    found, largest = linalg.add_rows(
        tf.constant(np.linalg.inv(matrices)),
        tf.constant(rows),
        tf.constant(weights),
        tf.constant(models, tf.int32),
    )
    gains = []
    for x, w, m in zip(rows, weights, models, strict=True):
        gains.append(w * x @ np.linalg.solve(matrices[m], x))
        matrices[m] += w * np.outer(x, x)
    np.testing.assert_allclose(largest, max(gains))
    np.testing.assert_allclose(found, np.linalg.inv(matrices), rtol=1e-9)
    both = linalg.inverses(tf.constant(matrices), 0.5)
    np.testing.assert_allclose(both, np.linalg.inv(matrices + 0.5 * np.eye(3)))


def test_features_that_depend_on_each_other_have_an_inverse():
    x = np.random.default_rng(0).normal(size=[200, 1]) * [1e4, 7e3, 0.0]
    found = linalg.inverses(tf.constant([x.T @ x]), 1e-8)[0].numpy()
    variance = np.sum(x @ found * x, axis=1)
    np.testing.assert_allclose(variance, x[:, 0] ** 2 / np.sum(x[:, 0] ** 2), rtol=1e-3)
    assert found[2, 2] == pytest.approx(1e8)


@pytest.mark.parametrize(
    ("function", "shapes", "text"),
    [
        (linalg.conjugate_gradient, ([2, 3], [2, 1]), "a_mat"),
        (linalg.conjugate_gradient, ([2, 2], [3, 1]), "b_mat"),
        (linalg.update_inverse, ([2, 2], [1, 3]), "u: got"),
    ],
)
def test_wrong_shapes_are_named(function, shapes, text):
    with pytest.raises(ValueError, match=text):
        function(*map(tf.zeros, shapes))
