"""Scalarizers against NumPy, with parameters for all rows and for each."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.bandits import multi_objective
from tfrl.bandits.policies.greedy_multi_objective_neural_policy import (
    scalarize_objectives,
)

X = np.random.default_rng(0).normal(size=[4, 3]).astype(np.float32)
W = np.float32([0.5, 2.0, 1.0])
Z = np.float32([-1.0, 0.0, -2.0])
ROWS = np.random.default_rng(1).uniform(0.1, 2, size=[2, 4, 3]).astype(np.float32)


def _hypervolume(v=(3.0, 0.0, 4.0)):
    kind = multi_objective.HyperVolumeScalarizer
    return kind(v, [kind.PARAMS(slope=a, offset=b) for a, b in zip(W, Z, strict=True)])


def test_linear():
    scalarizer = multi_objective.LinearScalarizer(W)
    np.testing.assert_allclose(scalarizer(X), X @ W, rtol=1e-5)
    scalarizer.set_parameters(weights=ROWS[0])
    np.testing.assert_allclose(scalarizer(X), (X * ROWS[0]).sum(1), rtol=1e-5)
    squares = multi_objective.LinearScalarizer(W, tf.square)
    np.testing.assert_allclose(squares(X), X**2 @ W, rtol=1e-5)


def test_chebyshev():
    scalarizer = multi_objective.ChebyshevScalarizer(W, Z)
    np.testing.assert_allclose(scalarizer(X), (W * (X - Z)).min(1), rtol=1e-5)
    scalarizer.set_parameters(weights=ROWS[0], reference_point=ROWS[1])
    expected = (ROWS[0] * (X - ROWS[1])).min(1)
    np.testing.assert_allclose(scalarizer(X), expected, rtol=1e-5)


def test_hypervolume_leaves_out_directions_of_0():
    values = np.maximum(X * W + Z, 0) / np.float32([0.6, 1.0, 0.8])
    np.testing.assert_allclose(
        _hypervolume()(tf.constant(X)), values[:, [0, 2]].min(1), rtol=1e-5
    )


def test_hypervolume_with_parameters_of_each_row():
    scalarizer = _hypervolume()
    scalarizer.set_parameters(
        direction=ROWS[0], transform_params={"slope": ROWS[1], "offset": ROWS[0]}
    )
    v = ROWS[0] / np.linalg.norm(ROWS[0], axis=1, keepdims=True)
    expected = (np.maximum(X * ROWS[1] + ROWS[0], 0) / v).min(1)
    np.testing.assert_allclose(scalarizer(tf.constant(X)), expected, rtol=1e-5)


def test_arms_are_scalarized_alike():
    scalarizer = multi_objective.ChebyshevScalarizer(W, Z)
    scalarizer.set_parameters(weights=ROWS[0], reference_point=ROWS[1])
    objectives = np.stack([X, 2 * X], axis=2)
    expected = np.stack([scalarizer(X), scalarizer(2 * X)], axis=1)
    np.testing.assert_allclose(
        scalarize_objectives(objectives, scalarizer), expected, rtol=1e-5
    )


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="num_of_objectives: got 1"):
        multi_objective.LinearScalarizer([1.0])
    with pytest.raises(ValueError, match="reference_point: got 1 of them, expected 3"):
        multi_objective.ChebyshevScalarizer(W, [1.0])
    with pytest.raises(ValueError, match="direction: got"):
        _hypervolume((1.0, -1.0, 0.0))
    with pytest.raises(ValueError, match=r"weights: got shape \(3,\), expected \[B, 3"):
        multi_objective.LinearScalarizer(W).set_parameters(weights=W)
    with pytest.raises(ValueError, match=r"multi_objectives: got shape \(4, 2\)"):
        multi_objective.LinearScalarizer(W)(X[:, :2])


def test_parameters_of_other_rows_are_refused():
    scalarizer = multi_objective.LinearScalarizer(W)
    scalarizer.set_parameters(weights=ROWS[0][:1])
    with pytest.raises(ValueError, match="got 2 rows, expected 1"):
        scalarizer(tf.ones([2, len(W)]))


def test_objectives_of_another_rank_are_refused():
    with pytest.raises(ValueError, match=r"objectives_tensor: got shape \(4, 3\)"):
        scalarize_objectives(X, _hypervolume())
