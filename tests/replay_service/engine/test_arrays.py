"""Arrays grow within reserved addresses, and distinct numbers are found."""

import numpy as np
import pytest

from tfrl.replay_service.engine import arrays as arrays_lib


def test_an_array_grows_in_place_within_what_is_reserved():
    first = arrays_lib.grown(np.array([1, 2], np.int32), 3, reserved=100)
    assert first.tolist() == [1, 2, 0]
    longer = arrays_lib.grown(first, 100, reserved=100)
    assert longer.size == 100
    assert not longer[2:].any()
    longer[0] = 7
    assert first[0] == 7
    # Then it is copied.
    copied = arrays_lib.grown(longer, 101, reserved=200)
    copied[0] = 9
    assert first[0] == 7
    assert copied[:2].tolist() == [9, 2]


def test_without_addresses_only_the_elements_are_allocated(monkeypatch):
    zeros = np.zeros

    def refuse(size, dtype):
        if size > 10:
            raise MemoryError
        return zeros(size, dtype)

    monkeypatch.setattr(np, "zeros", refuse)
    assert arrays_lib.grown(np.ones(1), 2, reserved=100).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_arrays_at_least_double(size):
    array = np.arange(4)
    longer = arrays_lib.doubled(array, size)
    assert longer.size == (4 if size <= 4 else max(size, 8))
    assert longer[:4].tolist() == [0, 1, 2, 3]


def test_large_arrays_double_without_copies():
    array = arrays_lib.doubled(np.ones(1), 1 << 18)
    longer = arrays_lib.doubled(array, 1 << 20)
    longer[0] = 5.0
    assert array[0] == 5.0


@pytest.mark.parametrize("values", [[], [3], [2, 2], [5, 1, 5, 3, 1]])
def test_distinct_numbers_ascend(values):
    found = arrays_lib.distinct(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))
    assert found.dtype == np.int64
