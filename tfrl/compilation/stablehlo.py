"""Calls programs in StableHLO, which other libraries lower, from TensorFlow.

A `Function` takes arrays of members, one beside the other, and treats each member alike
and alone. So it has a program for each number of members, and each platform, which is
lowered when a graph first needs it. In a graph that XLA compiles, the program becomes a
part of the graph's own; elsewhere XLA compiles it alone.
"""

from __future__ import annotations

import hashlib
import math
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.compilation import accelerators, internals

# The custom calls that XLA itself removes or knows on each platform.
_KNOWN_CALLS = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK", "mhlo.topk"}
)
_CUSTOM_CALL = re.compile(r'custom_call\s+@"?([\w.$]+)|call_target_name = "([^"]+)"')
_BOOLS = re.compile(r'dense<"0x(\w+)">( : tensor<([\dx]+)xi1>)')
_VERSION = 9  # Of the calling convention; later ones change nothing for texts.
_PLATFORMS = {"CPU": "cpu", "GPU": "cuda"}
# The functions by the hash of a program's text, for the converter of vectorized maps.
_functions: weakref.WeakValueDictionary[bytes, Function] = weakref.WeakValueDictionary()


class UnusableProgramError(ValueError):
    """A program that TensorFlow cannot use; the text says why."""


class Program(NamedTuple):
    """A program for a number of members.

    Attributes:
      text: The StableHLO module, whose function `main` is called.
      outputs: The spec of each result.
    """

    text: str
    outputs: tuple[tf.TensorSpec, ...]


class Function:
    """A function of members, `[B, ...]` each, by its programs."""

    def __init__(self, lower: Callable[[int, str], Program]) -> None:
        """Lowers nothing yet.

        Args:
          lower: Takes the number of members and the platform, "cpu" or "cuda", and
            returns the program.
        """
        self._lower = lower
        self._programs: dict[tuple[int, str], Program] = {}

    @tf.autograph.experimental.do_not_convert
    def __call__(self, *inputs: tf.Tensor) -> list[tf.Tensor]:
        """Calls the program for the inputs, `[B, ...]`; no gradient flows through it.

        Args:
          *inputs: Tensors of static shapes.

        Raises:
          ValueError: If it is called on a device that is neither a CPU nor a GPU.
        """
        device = accelerators.device_of_trace()
        kind = tf.DeviceSpec.from_string(device).device_type
        if kind not in _PLATFORMS:
            raise ValueError(
                f"device: got {device} for a program in StableHLO, expected a CPU or a "
                "GPU; choose one of them with tf.device."
            )
        key = inputs[0].shape[0], _PLATFORMS[kind]
        if key not in self._programs:
            with tf.init_scope():
                self._programs[key] = self._lower(*key)
        program = self._programs[key]
        _functions[_digest(program.text.encode())] = self
        return _call(program, _PLATFORMS[kind], inputs)


def _call(
    program: Program, platform: str, inputs: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    return internals.xla_call_module(
        [tf.stop_gradient(tensor) for tensor in inputs],
        version=_VERSION,
        module=program.text,
        Tout=[spec.dtype for spec in program.outputs],
        Sout=[spec.shape for spec in program.outputs],
        # One platform: the program takes no index of it. Some are lowered for another
        # one, whose operations are those of all.
        platforms=[platform.upper()],
        disabled_checks=["platform"],
    )


def function_of(operation: tf.Operation) -> Function | None:
    """Returns the function whose call an operation is, or None."""
    return _functions.get(_digest(operation.get_attr("module")))


def unknown_calls(text: str) -> list[str]:
    """Returns the names of the custom calls in a program that XLA does not know."""
    found = {first or second for first, second in _CUSTOM_CALL.findall(text)}
    return sorted(found - _KNOWN_CALLS)


def with_packed_bools(text: str) -> str:
    """Returns a program whose long constants of bools TensorFlow's MLIR can read.

    Later releases of MLIR write a byte for each bool, in hexadecimal digits;
    TensorFlow's reads a bit for each.
    """

    def packed(constant: re.Match[str]) -> str:
        values = np.frombuffer(bytes.fromhex(constant[1]), np.uint8)
        if values.size != math.prod(map(int, constant[3].split("x"))):
            return constant[0]
        bits = np.packbits(values, bitorder="little").tobytes().hex()
        return f'dense<"0x{bits}">{constant[2]}'

    return _BOOLS.sub(packed, text)


def obstacle(program: Program, inputs: Sequence[tf.TensorSpec]) -> str | None:
    """Returns why the installed TensorFlow cannot read a program, or None.

    Args:
      program: The program.
      inputs: The specs of its arguments.
    """
    function = tf.function(
        lambda *tensors: _call(program, "cpu", tensors),
        input_signature=inputs,
        autograph=False,
        jit_compile=True,
    )
    try:
        # Converts the program, and does not compile it.
        function.experimental_get_compiler_ir(*inputs)(stage="hlo")
    except (tf.errors.OpError, ValueError) as error:
        return str(error)
    return None


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def merged(function: Function, stacked: Sequence[Any]) -> list[tf.Tensor]:
    """Returns the results of several calls, as one call for all of their members.

    Args:
      function: The function.
      stacked: Its inputs, `[N, B, ...]`.

    Returns:
      The outputs, `[N, B, ...]`.
    """
    number, members = stacked[0].shape[:2]
    results = function(
        *(tf.reshape(x, [number * members, *x.shape[2:]]) for x in stacked)
    )
    return [tf.reshape(x, [number, members, *x.shape[1:]]) for x in results]
