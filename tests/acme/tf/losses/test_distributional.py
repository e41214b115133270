"""The projection of distributions whose atoms have several axes."""

import numpy as np
import pytest

from tfrl.acme.tf.losses import distributional


def test_each_distribution_is_projected_onto_each_support():
    rng = np.random.default_rng(0)
    z_p = np.sort(rng.normal(size=[2, 4, 3]), axis=-1)
    p = rng.dirichlet(np.ones(3), size=[2, 4])
    z_q = np.sort(rng.normal(size=[5, 4, 6]), axis=-1)
    projected = distributional.multiaxis_l2_project(z_p, p, z_q)
    assert projected.shape == [2, 5, 4, 6]
    for b, d, c in np.ndindex(2, 5, 4):
        alone = distributional.l2_project(z_p[b : b + 1, c], p[b : b + 1, c], z_q[d, c])
        np.testing.assert_allclose(projected[b, d, c], alone[0], rtol=1e-6)


def test_one_support_without_axes_is_for_all():
    probabilities = distributional.multiaxis_l2_project(
        [[0.0, 1.0]], [[0.5, 0.5]], [0.0, 0.5, 1.5]
    )
    np.testing.assert_allclose(probabilities, [[0.5, 0.25, 0.25]])


def test_axes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"got shape \(3,\), expected one that broadc"):
        distributional.multiaxis_l2_project(
            np.zeros([1, 2, 2]), np.zeros([1, 2, 2]), np.zeros([3, 2])
        )
