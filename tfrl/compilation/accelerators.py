"""Graphs for an accelerator that rarely wait for the host.

Most of TensorFlow's GPU kernels for int32 work in the host's memory; exceptions are
casts, gathers and selections. Assertions, the conditions of `tf.cond` and the positions
of slices are needed in the host's memory, too. TensorFlow copies such results from the
accelerator to the host, and starts no further kernel until they have arrived. Loops on
an accelerator are traced inside `graph_for`, where the functions of this module avoid
such copies. The numbers are the same. In other graphs these functions are the plain
operations, which are fewer.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import context

_is_on = contextvars.ContextVar("tfrl_on_accelerator", default=False)
# Floats of the same width, for which a GPU has kernels that move them. These kernels
# compute nothing, so no bit changes.
_CARRIERS = {tf.int32: tf.float32, tf.int64: tf.float64}


def is_host(device: str) -> bool:
    """Whether a device's name, such as "/device:GPU:0", names the first CPU."""
    spec = tf.DeviceSpec.from_string(device)
    return spec.device_type in (None, "CPU") and not spec.device_index


def device_of_trace() -> str:
    """Returns the name of the device of the program that is being traced."""
    with tf.init_scope():
        # TensorFlow places the program as it places this tensor now.
        return tf.zeros([]).device


@contextlib.contextmanager
def graph_for(device: str) -> Iterator[None]:
    """A context in which graphs are traced for a device; no change for the first CPU.

    Args:
      device: The name of the device, such as "/device:GPU:0".
    """
    token = _is_on.set(not is_host(device))
    try:
        yield
    finally:
        _is_on.reset(token)


def in_graph() -> bool:
    """Whether the graph being traced is for an accelerator, and not for XLA."""
    return _is_on.get() and not tf.executing_eagerly() and not context.in_xla_graph()


def in_host_program(variables: Sequence[Any]) -> bool:
    """Whether the graph being traced is one that XLA compiles for the CPU.

    It is not in the programs of sweeps, whose variables do not know their device.

    Args:
      variables: Variables of the program, of TensorFlow or of Keras.
    """
    return context.in_xla_graph() and all(map(_is_on_host, variables))


def _is_on_host(variable: Any) -> bool:
    """Whether a variable of TensorFlow or of Keras is in the CPU's memory."""
    held = variable if isinstance(variable, tf.Variable) else variable.value
    return tf.DeviceSpec.from_string(held.device).device_type == "CPU"


def assert_true(condition: tf.Tensor, data: Sequence[Any]) -> Any:
    """Returns `context.assert_true`; for an accelerator, a no-op as under XLA.

    So a loop must check the condition on the host by other means.

    Args:
      condition: A bool scalar.
      data: See `context.assert_true`.
    """
    return tf.no_op() if in_graph() else context.assert_true(condition, data)


def index_dtype() -> tf.DType:
    """Returns the dtype to count with: int64 for an accelerator, else int32."""
    return tf.int64 if in_graph() else tf.int32


def equal(x: tf.Tensor, y: Any) -> tf.Tensor:
    """Returns `tf.equal(x, y)`, for a tensor and a value of its dtype."""
    if not _goes_by_host(x):
        return tf.equal(x, y)
    return tf.equal(comparable(x), comparable(tf.convert_to_tensor(y, x.dtype)))


def comparable(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a form of `tensor` that can be sliced, and compared with `tf.equal`."""
    return tf.bitcast(tensor, tf.uint32) if _goes_by_host(tensor) else tensor


def moved(function: Callable[..., Any], *tensors: Any) -> Any:
    """Returns `function(*tensors)`.

    Args:
      function: A function that reshapes, slices, joins or gathers, and does not
        compute. It returns one tensor.
      *tensors: Tensors of one dtype.
    """
    if not _goes_by_host(tensors[0]):
        return function(*tensors)
    floats = [tf.bitcast(tensor, tf.float32) for tensor in tensors]
    return tf.bitcast(function(*floats), tf.int32)


def map_moved(function: Callable[..., Any], *nests: Any) -> Any:
    """Returns the nest of `moved(function, *leaves)`."""
    return tf.nest.map_structure(lambda *leaves: moved(function, *leaves), *nests)


def unstack(tensor: tf.Tensor, num: int | None = None, axis: int = 0) -> list[Any]:
    """Returns `tf.unstack(tensor, num, axis)`."""
    dtype = tensor.dtype
    if not in_graph() or dtype not in _CARRIERS:
        return tf.unstack(tensor, num, axis)
    parts = tf.unstack(tf.bitcast(tensor, _CARRIERS[dtype]), num, axis)
    return [tf.bitcast(part, dtype) for part in parts]


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: tuple[tf.Tensor, Any],
    **kwargs: Any,
) -> Any:
    """Returns `tf.while_loop(condition, body, loop_vars, **kwargs)`.

    Args:
      condition: See `tf.while_loop`.
      body: See `tf.while_loop`.
      loop_vars: An int32 counter, which stays in the host's memory, and a nest, whose
        int32 tensors are not copied to the host at each turn.
      **kwargs: See `tf.while_loop`.
    """
    start, restored = carried(loop_vars[1])

    def turn(counter: tf.Tensor, variables: Any) -> tuple[tf.Tensor, Any]:
        counter, variables = body(counter, restored(variables))
        return counter, carried(variables)[0]

    counter, variables = tf.while_loop(
        lambda counter, variables: condition(counter, restored(variables)),
        turn,
        (loop_vars[0], start),
        **kwargs,
    )
    return counter, restored(variables)


def carried(nest: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Returns a nest for use in a loop or by `moved`, and a function that restores it.

    Otherwise tensors that a loop's body uses, but that are made outside of it, would be
    copied to the host and back.

    Returns:
      The nest with the bits of int32 tensors as float32, and a function that turns such
      a nest back into int32.
    """
    are_int32 = [_goes_by_host(leaf) for leaf in tf.nest.flatten(nest)]

    def restored(nest: Any) -> Any:
        leaves = [
            tf.bitcast(leaf, tf.int32) if is_int32 else leaf
            for leaf, is_int32 in zip(tf.nest.flatten(nest), are_int32, strict=True)
        ]
        return tf.nest.pack_sequence_as(nest, leaves)

    if not any(are_int32):
        return nest, lambda nest: nest
    floats = tf.nest.map_structure(
        lambda leaf: tf.bitcast(leaf, tf.float32) if _goes_by_host(leaf) else leaf,
        nest,
    )
    return floats, restored


def _goes_by_host(tensor: Any) -> bool:
    return in_graph() and isinstance(tensor, tf.Tensor) and tensor.dtype == tf.int32
