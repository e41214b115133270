"""Graphs for an accelerator, in which the host waits for few results.

TensorFlow's GPU kernels of int32 work in the host's memory, apart from a few (casts,
gathers, selections). Assertions, the conditions of `tf.cond` and the positions of
slices are needed there, too. What the accelerator has computed is copied to the host
for them, and no further kernel starts until it is there. Loops on an accelerator are
traced in `graph_for` it, where the functions here avoid such copies. The numbers are
the same. In other graphs they are the plain operations, which are fewer.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import context

_is_on = contextvars.ContextVar("tfrl_on_accelerator", default=False)
# Floats of the same width: a GPU has the kernels that move them. None of them computes,
# so no bit changes.
_CARRIERS = {tf.int32: tf.float32, tf.int64: tf.float64}


def is_host(device: str) -> bool:
    """Whether a device's name, such as "/device:GPU:0", is that of the first CPU."""
    spec = tf.DeviceSpec.from_string(device)
    return spec.device_type in (None, "CPU") and not spec.device_index


@contextlib.contextmanager
def graph_for(device: str) -> Iterator[None]:
    """Traces graphs for a device; on the first CPU, as without this context.

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


def assert_true(condition: tf.Tensor, data: Sequence[Any]) -> Any:
    """Returns `context.assert_true`; for an accelerator, a no-op as under XLA.

    So a loop must make sure of the condition by what it knows on the host.

    Args:
      condition: A bool scalar.
      data: See `context.assert_true`.
    """
    return tf.no_op() if in_graph() else context.assert_true(condition, data)


def index_dtype() -> tf.DType:
    """Returns the dtype to count with: int64 for an accelerator, else int32."""
    return tf.int64 if in_graph() else tf.int32


def equal(x: tf.Tensor, y: Any) -> tf.Tensor:
    """Returns `tf.equal(x, y)`, for a tensor and what is converted to its dtype."""
    if not _goes_by_host(x):
        return tf.equal(x, y)
    return tf.equal(comparable(x), comparable(tf.convert_to_tensor(y, x.dtype)))


def comparable(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a tensor to slice, and to compare by `tf.equal`, in place of `tensor`."""
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
        tensors of int32 do not go there at each turn.
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
    """Returns a nest for use in a loop or by `moved`, and what turns it back.

    What a loop's body uses, and is made outside of it, would otherwise go by the host.

    Returns:
      The nest with float32 in place of int32, and a function of such a nest that
      returns the int32.
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
