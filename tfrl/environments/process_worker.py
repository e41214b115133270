"""The worker process of a `ProcessPyEnvironment`, which serves an environment.

The worker does not import TensorFlow, unless the constructor of the environment does.
"""

from __future__ import annotations

import inspect
import math
import mmap
import os
import pickle
import tempfile
from typing import Any

import cloudpickle
import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.system import channel as channels
from tfrl.system import child_errors
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


# Requests. APPLY has a pickled function of the environment, with further arguments, and
# a pickled RESULT.
APPLY = 2
ATTACH = 3
STEP = 4
RESET = 5
CLOSE = 6

# Answers. SHARED means that the time step is in the shared memory.
RESULT = 2
SHARED = 3


def serve(pickled_constructor: bytes, channel: channels.Channel) -> None:
    """Makes the environment, sends its specs, and answers requests until CLOSE.

    Args:
      pickled_constructor: The constructor of the environment, pickled by cloudpickle.
      channel: The channel to the parent.

    Raises:
      TypeError: If the constructor does not return an environment.
      ValueError: If it returns a batched environment.
    """
    environment = cloudpickle.loads(pickled_constructor)()
    if not isinstance(environment, py_environment.PyEnvironment):
        raise TypeError(
            f"env_constructor: returned {environment!r} of type "
            f"{type(environment).__name__}, expected a PyEnvironment; wrap a Gymnasium "
            "environment with suite_gym.wrap_env first."
        )
    if environment.batched:
        raise ValueError(
            f"env_constructor: returned the batched environment {environment!r}, "
            "expected a single one; give the constructors of its members."
        )
    specs = (environment.action_spec(), environment.time_step_spec())
    channel.send(channels.READY, cloudpickle.dumps(specs))
    worker = _Worker(environment, channel, specs)
    while worker.answer(*channel.receive()):
        pass


def look_up(environment: py_environment.PyEnvironment, name: str) -> tuple[bool, Any]:
    """Returns `(True, None)` for a method, else `(False, value)`."""
    value = getattr(environment, name)
    return (True, None) if inspect.ismethod(value) else (False, value)


class _Worker:
    """Answers requests about the environment."""

    def __init__(
        self,
        environment: py_environment.PyEnvironment,
        channel: channels.Channel,
        specs: tuple[Any, Any],
    ):
        self._environment = environment
        self._channel = channel
        self._specs = specs
        self._member: Any = None

    def answer(self, kind: int, payload: bytes) -> bool:
        """Answers one request, and returns whether to wait for another."""
        try:
            answer = self._carry_out(kind, payload)
        except Exception as error:
            self._channel.send(channels.RAISED, child_errors.payload_of(error))
        else:
            self._channel.send(*answer)
        return kind != CLOSE

    def _carry_out(self, kind: int, payload: bytes) -> tuple[int, bytes]:
        if kind == STEP:
            return self._tell(self._environment.step(self._member.read_action()))
        if kind == RESET:
            return self._tell(self._environment.reset())
        return RESULT, cloudpickle.dumps(self._evaluate(kind, payload))

    def _tell(self, time_step: Any) -> tuple[int, bytes]:
        if self._member is not None and self._member.write_time_step(time_step):
            return SHARED, b""
        return RESULT, cloudpickle.dumps(time_step)

    def _evaluate(self, kind: int, payload: bytes) -> Any:
        if kind == CLOSE:
            return self._environment.close()
        if kind == ATTACH:
            return self._attach(*pickle.loads(payload))
        function, args = pickle.loads(payload)
        return function(self._environment, *args)

    def _attach(self, member: int, batch_size: int) -> None:
        fd = self._channel.receive_file()
        try:
            batch = SharedBatch(fd, *self._specs, batch_size)
        finally:
            os.close(fd)
        self._member = SharedMember(batch, member)
