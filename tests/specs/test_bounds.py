"""Tests of `tfrl.specs.bounds`."""

import numpy as np
import pytest

from tfrl.specs import bounds

LARGEST = np.finfo(np.float32).max


@pytest.mark.parametrize("size", [1, 32, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0, LARGEST, -LARGEST, np.inf, -np.inf, np.nan])
def test_a_finite_check_sees_the_numbers_of_the_moment(size, dtype, value):
    array = np.full(size, LARGEST, dtype)
    is_finite = bounds.make_finite_check(array)
    assert is_finite()
    array[-1] = value
    assert is_finite() == bool(np.isfinite(value))
    array[:] = value
    assert is_finite() == bool(np.isfinite(value))
