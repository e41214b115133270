"""The room that a writer keeps for steps; the rest is tested with the writer."""

from __future__ import annotations

import numpy as np
import pytest

from tfrl.replay_service.writing import buffers as writer_buffers


@pytest.mark.parametrize("size", [1, 1 << 10, 1 << 20])
def test_room_is_kept_for_a_few_large_steps_or_many_small_ones(size):
    buffers = writer_buffers.StepBuffers(keep=2)
    for _ in range(20):
        buffers.append({"x": np.zeros(size, np.uint8)}, is_partial=False)
        room = sum(array.nbytes for block in buffers._blocks for array in block.arrays)
        assert room <= max(8 * size, 2 * (2 << 20))
