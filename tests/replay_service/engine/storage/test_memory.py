"""Memory is checked before it is used."""

import mmap

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import memory


def test_reserved_bytes_are_checked_together(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10 << 30)
    reserved = memory.Reserved()
    reserved.add(6 << 30)
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        reserved.add(5 << 30)
    assert reserved.size == 6 << 30
    reserved.add(-(6 << 30))
    reserved.add(5 << 30)
    assert reserved.size == 5 << 30


def test_few_reserved_bytes_are_not_checked(monkeypatch):
    def check(size):
        raise AssertionError

    monkeypatch.setattr(memory, "check", check)
    reserved = memory.Reserved()
    for _ in range(1000):
        reserved.add(32 << 20)
        reserved.add(-(32 << 20))


LARGE = 18 << 20

needs_madvise = pytest.mark.skipif(
    not hasattr(mmap, "MADV_DONTNEED"), reason="The system frees memory only whole."
)


def test_arrays_have_their_size_and_can_be_written():
    large = memory.LargeMemory(list)
    for size in (0, 1, 4096, LARGE, LARGE + 1):
        array = large.allocate(size)
        array[:] = 7
        assert array.dtype == np.uint8
        assert array.shape == (size,)
        assert (array == 7).all()


@needs_madvise
def test_a_large_array_is_freed_in_slices_after_its_last_view():
    freed = []
    large = memory.LargeMemory(freed.append)
    array = large.allocate(LARGE)
    view = memoryview(array).cast("B")[5:]
    del array
    assert not freed
    del view
    (work,) = freed
    assert len(list(work)) == 5  # Slices of 4 MB.


@needs_madvise
def test_small_arrays_are_freed_as_usual():
    freed = []
    large = memory.LargeMemory(freed.append)
    array = large.allocate(1000)
    del array
    assert not freed
