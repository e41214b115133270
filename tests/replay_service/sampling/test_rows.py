"""The memory of batches: its alignment, and when it is reused."""

import numpy as np

from tfrl.replay_service.sampling.rows import Batches

FRAMES = ((np.dtype(np.uint8), (512, 512)), (np.dtype(np.int64), ()))


def test_columns_are_aligned_and_apart_from_one_another():
    specs = tuple(
        (np.dtype(dtype), shape)
        for dtype, shape in (("int8", (3,)), ("float16", ()), ("float32", (300, 300)))
    )
    batch = Batches().take(specs, 5)
    assert [a.shape for a in batch[5:]] == [(5, 3), (5,), (5, 300, 300)]
    for i, array in enumerate(batch):
        assert array.ctypes.data % 64 == 0
        array[...] = i
    assert all((array == i).all() for i, array in enumerate(batch))


def test_large_memory_is_used_again_only_after_its_last_user():
    batches = Batches(reuse=True)
    first = batches.take(FRAMES, 8)
    address = first[5].ctypes.data
    part = first[5][2]
    del first
    assert batches.take(FRAMES, 8)[5].ctypes.data != address
    del part
    assert batches.take(FRAMES, 8)[5].ctypes.data == address


def test_small_columns_of_a_batch_keep_all_of_its_memory():
    batches = Batches(reuse=True)
    batch = batches.take(FRAMES, 8)
    address, keys = batch[5].ctypes.data, batch[0]
    del batch
    assert batches.take(FRAMES, 8)[5].ctypes.data != address
    del keys
    assert batches.take(FRAMES, 8)[5].ctypes.data == address


def test_without_reuse_all_memory_is_new():
    batches = Batches()
    first = batches.take(FRAMES, 8)
    first[6][:] = 7
    assert batches.take(FRAMES, 8)[6].ctypes.data != first[6].ctypes.data
