"""Calls of Python from programs that XLA compiled for an NVIDIA GPU.

Such a program reaches the handler of `host_calls` with addresses in the GPU's memory,
at a place in a stream of work that the GPU has not necessarily reached. So the handler
copies the operands to memory of the host, waits for the stream, calls Python, and lets
the stream copy the results back before what follows.

A small program in a process of its own tries it first, so that no crash reaches a run.
That the trial has passed is kept beside the compiled programs. If it fails, or the
environment variable `TFRL_CALLS_FROM_GPU` is 0, loops consist of two programs, one for
the host and one for the GPU.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from tfrl.compilation import program_cache, program_kinds, program_store

VARIABLE = "TFRL_CALLS_FROM_GPU"
_OFF, _IN_TRIAL = "0", "trial"  # Its values.
_TRIAL = """
import tfrl
from tfrl.compilation.python_calls import gpu_calls_trial
print(gpu_calls_trial.run("GPU:0"))
"""
_PASSED = "passed"
_TRIAL_SECONDS = 240.0
_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"


class Memory(Protocol):
    """Copies between the memories of the host and of a device.

    The copies happen in the order of the stream, a number, in which they are made.
    """

    def allocate(self, size: int) -> int:
        """Returns the address of bytes of the host which a device can copy."""

    def free(self, address: int) -> None:
        """Frees what `allocate` returned."""

    def copy_to_host(self, to: int, start: int, size: int, stream: int) -> None:
        """Copies bytes from the device's address `start` to the host's `to`."""

    def copy_to_device(self, to: int, start: int, size: int, stream: int) -> None:
        """Copies bytes from the host's address `start` to the device's `to`."""

    def wait(self, stream: int) -> None:
        """Returns when all that was given to the stream has been done."""


class CudaMemory:
    """A `Memory` by the functions of NVIDIA's driver, for its streams."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        """Opens the driver.

        Args:
          library: The driver's file.

        Raises:
          NotImplementedError: There is no such file, or it lacks a function.
        """
        try:
            driver = ctypes.CDLL(library)
            address, size, stream = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
            self._alloc = _typed(driver.cuMemAllocHost_v2, ctypes.c_void_p, size)
            self._free = _typed(driver.cuMemFreeHost, ctypes.c_void_p)
            self._to_host = _typed(
                driver.cuMemcpyDtoHAsync_v2, ctypes.c_void_p, address, size, stream
            )
            self._to_device = _typed(
                driver.cuMemcpyHtoDAsync_v2, address, ctypes.c_void_p, size, stream
            )
            self._wait = _typed(driver.cuStreamSynchronize, stream)
        except (OSError, AttributeError) as error:
            raise NotImplementedError(
                f"host_call: NVIDIA's driver cannot be used: {error}; set {VARIABLE}=0."
            ) from None

    def allocate(self, size: int) -> int:
        """Returns the address of page-locked bytes of the host."""
        place = ctypes.c_void_p()
        _check(self._alloc(ctypes.addressof(place), size))
        assert place.value is not None
        return place.value

    def free(self, address: int) -> None:
        """Frees what `allocate` returned."""
        _check(self._free(address))

    def copy_to_host(self, to: int, start: int, size: int, stream: int) -> None:
        """See `Memory`."""
        _check(self._to_host(to, start, size, stream))

    def copy_to_device(self, to: int, start: int, size: int, stream: int) -> None:
        """See `Memory`."""
        _check(self._to_device(to, start, size, stream))

    def wait(self, stream: int) -> None:
        """See `Memory`. Other threads of Python run meanwhile."""
        _check(self._wait(stream))


def _typed(function: Any, *arguments: Any) -> Callable[..., int]:
    function.argtypes, function.restype = arguments, ctypes.c_int
    return function


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVIDIA's driver: error {status} in a call of Python")


class _Copy(NamedTuple):
    """The number of a buffer of a call, its place in the host's memory, its size."""

    buffer: int
    place: int
    size: int


class Staging:
    """The memory of the host for the operands and the results of a call."""

    def __init__(
        self, memory: Memory, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Allocates the memory, which is freed with this object.

        Args:
          memory: The memories.
          inputs: The size of each operand in bytes.
          outputs: The size of each result in bytes.
        """
        self._memory = memory
        # NumPy wants an address also for an array without elements.
        self._places = tuple(
            memory.allocate(max(size, 1)) for size in (*inputs, *outputs)
        )
        copies = [
            _Copy(buffer, place, size)
            for buffer, (place, size) in enumerate(
                zip(self._places, (*inputs, *outputs), strict=True)
            )
        ]
        self._inputs = [copy for copy in copies[: len(inputs)] if copy.size]
        self._outputs = [copy for copy in copies[len(inputs) :] if copy.size]
        free = weakref.finalize(self, _free_all, memory, self._places)
        free.atexit = False  # The driver may have ended before.

    def call(
        self,
        function: Callable[[tuple[int, ...]], None],
        addresses: tuple[int, ...],
        stream: int,
    ) -> None:
        """Calls a function with copies of the operands, and copies the results back.

        Args:
          function: Takes the addresses of the operands and then of the results, in the
            host's memory.
          addresses: The same in the device's memory.
          stream: The stream.
        """
        memory = self._memory
        for buffer, place, size in self._inputs:
            memory.copy_to_host(place, addresses[buffer], size, stream)
        # The results of the last call, too, have left this memory then.
        memory.wait(stream)
        function(self._places)
        for buffer, place, size in self._outputs:
            memory.copy_to_device(addresses[buffer], place, size, stream)


def _free_all(memory: Memory, places: Sequence[int]) -> None:
    for place in places:
        memory.free(place)


def are_on(device: str) -> bool:
    """Whether compiled programs on a device call Python themselves.

    Args:
      device: The name of a device, such as "/device:GPU:0".
    """
    value = os.environ.get(VARIABLE)
    if value == _OFF or tf.DeviceSpec.from_string(device).device_type != "GPU":
        return False
    return value == _IN_TRIAL or _trial_passes()


@functools.cache
def _trial_passes() -> bool:
    """Whether the trial passes, now or in an earlier process of this kind."""
    store = _store()
    if store and store.read(VARIABLE):
        return True
    obstacle = _try()
    if obstacle is None:
        if store:
            store.write(VARIABLE, "trial", _PASSED.encode())
        return True
    warnings.warn(
        "A program on the GPU could not call Python in a trial, so loops consist of "
        f"two programs and are slower: {obstacle}. {VARIABLE}=0 leaves the trial out.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _try() -> str | None:
    """Runs the trial in a process of its own; returns why it failed, or None."""
    try:
        ended = subprocess.run(
            # With -P it imports nothing from the working directory.
            [sys.executable, "-P", "-c", _TRIAL],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                VARIABLE: _IN_TRIAL,
                # This process may have taken nearly all memory of the GPU.
                _GROWTH: "true",
            },
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end in {_TRIAL_SECONDS:.0f} s"
    said = (ended.stderr if ended.returncode else ended.stdout).strip()
    last = said.rpartition("\n")[2]
    if ended.returncode:
        return f"it ended with {ended.returncode}, {last}"
    return None if last == _PASSED else last


def _store() -> program_store.ProgramStore | None:
    """Returns the user's store of programs; None if there is none."""
    try:
        root = program_cache.find_root(os.environ)
    except program_store.NoPlaceError:
        return None
    return program_store.ProgramStore(root, program_kinds.kind(), lambda _: None)
