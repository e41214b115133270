"""`SharedBatch`, the arrays of a batched environment in memory that processes share.

A step then takes one small message each way for each member, and copies the batch only
once, for the caller to keep. The memory is an unnamed file. Unlike a segment of POSIX
shared memory, it needs no cleanup and is not limited by /dev/shm; it is allocated in
full when it is made, so a later write cannot run out of memory.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
import tree

from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

_ALIGNMENT = 64  # Bytes of a cache line, so that no two arrays share one.


class SharedBatch:
    """Holds actions and time steps `[B, ...]` in memory shared by all processes."""

    def __init__(self, fd: int, action_spec: Any, time_step_spec: Any, batch_size: int):
        """Maps the file.

        Args:
          fd: The descriptor that `make_file` returned for the same specs.
          action_spec: The nest of `ArraySpec`s of one member's actions.
          time_step_spec: The `TimeStep` of specs of one member.
          batch_size: The number of members.
        """
        self._action_spec = action_spec
        self._time_step_spec = time_step_spec
        self._is_single = all(
            isinstance(spec, array_spec.ArraySpec)
            for spec in (time_step_spec.observation, time_step_spec.reward)
        )
        specs = tree.flatten((action_spec, time_step_spec))
        offsets, size = _lay_out(specs, batch_size)
        memory = mmap.mmap(fd, size)
        arrays = [
            np.ndarray((batch_size, *spec.shape), spec.dtype, memory, offset)
            for spec, offset in zip(specs, offsets, strict=True)
        ]
        num_actions = len(tree.flatten(action_spec))
        self._actions = arrays[:num_actions]
        self._time_steps = arrays[num_actions:]

    def write_actions(self, action: Any) -> bool:
        """Writes the members' actions.

        Returns:
          Whether the actions match their specs exactly. If not, nothing is written.
        """
        if isinstance(self._action_spec, array_spec.ArraySpec):
            leaves = [action]
        elif _has_structure_of(self._action_spec, action):
            leaves = tree.flatten(action)
        else:
            return False
        return _copy_all(self._actions, leaves)

    def read_time_steps(self) -> ts.TimeStep:
        """Returns a copy of the members' time steps, `[B, ...]`."""
        return self._pack([array.copy() for array in self._time_steps])

    def read_time_step(self, member: int) -> ts.TimeStep:
        """Returns a copy of one member's time step."""
        return self._pack([array[member].copy() for array in self._time_steps])

    def _pack(self, leaves: list[Any]) -> ts.TimeStep:
        if self._is_single:
            return ts.TimeStep(*leaves)
        return tree.unflatten_as(self._time_step_spec, leaves)


class SharedMember:
    """Gives access to one member's rows of a `SharedBatch`."""

    def __init__(self, batch: SharedBatch, member: int):
        """Takes the rows of one member.

        Args:
          batch: The arrays of all members.
          member: The index of the member.
        """
        self._spec = batch._time_step_spec
        self._action_spec = batch._action_spec
        self._is_single = batch._is_single
        self._action = [array[member, ...] for array in batch._actions]
        self._time_step = [array[member, ...] for array in batch._time_steps]

    def read_action(self) -> Any:
        """Returns a copy of the member's action."""
        leaves = [row.copy() for row in self._action]
        if isinstance(self._action_spec, array_spec.ArraySpec):
            return leaves[0]
        return tree.unflatten_as(self._action_spec, leaves)

    def write_time_step(self, time_step: ts.TimeStep) -> bool:
        """Writes the time step.

        Returns:
          Whether the time step matches its spec exactly. If not, nothing is written.
        """
        if self._is_single:
            return _copy_all(self._time_step, time_step)
        if not _has_structure_of(self._spec, time_step):
            return False
        return _copy_all(self._time_step, tree.flatten(time_step))


def can_share(specs: Any) -> bool:
    """Whether arrays of these specs have a fixed size, unlike strings and objects."""
    return all(
        spec.dtype.kind in "biufc" and None not in spec.shape
        for spec in tree.flatten(specs)
    )


def make_file(specs: Any, batch_size: int) -> int:
    """Returns the descriptor of an unnamed file, large enough for a batch.

    Args:
      specs: The pair of the action spec and the time step spec.
      batch_size: The number of members.

    Raises:
      OSError: If there is no room for the file.
    """
    _, size = _lay_out(tree.flatten(specs), batch_size)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("tfrl")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            os.write(fd, bytes(size))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lay_out(specs: list[Any], batch_size: int) -> tuple[list[int], int]:
    offsets = []
    size = 0
    for spec in specs:
        offsets.append(size)
        length = batch_size * math.prod(spec.shape) * spec.dtype.itemsize
        size += -(-length // _ALIGNMENT) * _ALIGNMENT
    return offsets, max(size, _ALIGNMENT)


def _copy_all(rows: list[np.ndarray], leaves: Any) -> bool:
    arrays = []
    for row, leaf in zip(rows, leaves, strict=True):
        array = np.asarray(leaf)
        if array.dtype != row.dtype or array.shape != row.shape:
            return False
        arrays.append(array)
    for row, array in zip(rows, arrays, strict=True):
        row[...] = array
    return True


def _has_structure_of(spec: Any, value: Any) -> bool:
    try:
        tree.assert_same_structure(spec, value, check_types=False)
    except (TypeError, ValueError):
        return False
    return True
