"""Large arrays are freed in slices when nothing refers to them any more."""

import mmap

import numpy as np
import pytest

from tfrl.replay_service.engine.storage import large_memory

LARGE = 18 << 20

needs_madvise = pytest.mark.skipif(
    not hasattr(mmap, "MADV_DONTNEED"), reason="The system frees memory only whole."
)


def test_arrays_have_their_size_and_can_be_written():
    memory = large_memory.LargeMemory(list)
    for size in (0, 1, 4096, LARGE, LARGE + 1):
        array = memory.allocate(size)
        array[:] = 7
        assert array.dtype == np.uint8
        assert array.shape == (size,)
        assert (array == 7).all()


@needs_madvise
def test_a_large_array_is_freed_in_slices_after_its_last_view():
    freed = []
    memory = large_memory.LargeMemory(freed.append)
    array = memory.allocate(LARGE)
    view = memoryview(array).cast("B")[5:]
    del array
    assert not freed
    del view
    (work,) = freed
    assert len(list(work)) == 5  # Slices of 4 MB.


@needs_madvise
def test_small_arrays_are_freed_as_usual():
    freed = []
    memory = large_memory.LargeMemory(freed.append)
    array = memory.allocate(1000)
    del array
    assert not freed
