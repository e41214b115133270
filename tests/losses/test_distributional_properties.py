"""Projections of distributions onto other atoms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.losses import distributional

ATOMS, NEW = 4, 5
RISING = st.lists(st.integers(-50, 50), min_size=NEW, max_size=NEW, unique=True).map(
    lambda x: np.float32(sorted(x)) / 4
)


@given(
    properties.floats(2, ATOMS),
    st.lists(st.integers(1, 9), min_size=2 * ATOMS, max_size=2 * ATOMS),
    RISING,
)
def test_probabilities_go_to_the_atoms_beside(atoms, weights, onto):
    p = np.float64(weights).reshape(2, ATOMS)
    p /= p.sum(1, keepdims=True)
    got = distributional.l2_project(atoms / 4, np.float32(p), onto).numpy()
    expected = np.zeros((2, NEW))
    clipped = np.clip(atoms / 4, onto[0], onto[-1])
    for row in range(2):
        for z, mass in zip(clipped[row], p[row], strict=True):
            i = min(np.searchsorted(onto, z, side="right") - 1, NEW - 2)
            share = (z - onto[i]) / (onto[i + 1] - onto[i])
            expected[row, i] += mass * (1 - share)
            expected[row, i + 1] += mass * share
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got @ onto, np.sum(clipped * p, 1), rtol=1e-4, atol=1e-3)
