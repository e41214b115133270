"""A `tf.function` that finds the trace for its arguments in less time.

For every call `tf.function` binds the arguments to the signature, describes each by a
trace type, and hashes and compares those: for a nest of six tensors that takes longer
than running a small graph. `FastFunction` remembers which trace served a nest of these
classes, dtypes and shapes, and runs it straight away. All else is `tf.function`'s own:
tracing, relaxed shapes, the creation of variables, gradients.

Only eager calls with nests of dense tensors and `None`, outside of any distribution
strategy, are remembered. All other calls take the ordinary way, slower but the same,
and so do all calls should a release of TensorFlow move what this module reaches for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# A function whose shapes differ at every call would remember for ever.
_MOST_TRACES = 64

_TFFunction: Any = type(tf.function(lambda: None))
_EagerTensor = type(tf.constant(0))
_OPAQUE_DTYPES = (tf.resource, tf.variant)


def fast_function(func: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """`tf.function(func, **kwargs)`, which is also a decorator, as a `FastFunction`."""
    if func is None:
        return lambda decorated: fast_function(decorated, **kwargs)
    function = tf.function(func, **kwargs)
    # A function of tf.function's own making, so that nothing about it differs.
    function.__class__ = FastFunction
    return function


class FastFunction(_TFFunction):
    """See the module; made by `fast_function`."""

    # By the description of the arguments: what runs their trace, given the tensors;
    # None until a second call shows that it pays; False if there is no fast path.
    _fast_paths: dict[Any, Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            not tf.executing_eagerly()
            or tf.config.functions_run_eagerly()
            or tf.distribute.has_strategy()
        ):
            return super().__call__(*args, **kwargs)
        tensors: list[tf.Tensor] = []
        try:
            key = _describe_call(args, kwargs, tensors)
        except _NotPlainError:
            return super().__call__(*args, **kwargs)
        ways = self._fast_paths
        if ways is None or len(ways) > _MOST_TRACES:
            ways = self._fast_paths = {}
        run = ways.get(key)
        if run:
            return run(tensors)
        result = super().__call__(*args, **kwargs)
        if key not in ways:
            ways[key] = None
        elif run is None:
            ways[key] = self._fast_path(args, kwargs)
        return result

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_fast_paths", None)
        return state

    def _fast_path(self, args: Any, kwargs: Any) -> Any:
        """Returns what runs the trace for arguments like these; False if nothing does.

        It takes the arguments' tensors in the order in which they are described.
        """
        # New tensors, all different, to see which of them goes where.
        args, kwargs = tf.nest.map_structure(
            lambda leaf: None if leaf is None else tf.identity(leaf), (args, kwargs)
        )
        tensors: list[tf.Tensor] = []
        _describe_call(args, kwargs, tensors)
        try:
            trace = self.get_concrete_function(*args, **kwargs)
            looked_up = trace.graph.deferred_external_captures
            if looked_up or self._function_captures.by_ref_external:
                return False  # What it captures may be another thing at each call.
            bound = self._function_type.bind_with_defaults(
                args, kwargs, self._default_values
            )
            inputs = trace.function_type.unpack_inputs(
                trace.function_type.bind(*bound.args, **bound.kwargs)
            )
            run, captured = trace._call_flat, trace.captured_inputs
            places = {id(tensor): i for i, tensor in enumerate(tensors)}
            order = [places[id(tensor)] for tensor in inputs]
        except (AttributeError, KeyError, TypeError):
            return False
        if len(order) + len(captured) != len(trace.inputs):
            return False
        if order == list(range(len(tensors))):
            return lambda tensors: run(tensors, captured)
        return lambda tensors: run([tensors[i] for i in order], captured)


class _NotPlainError(Exception):
    """The arguments are not just dense tensors in tuples, lists and dicts."""


def _describe_call(args: Any, kwargs: Any, tensors: list[tf.Tensor]) -> Any:
    described = _describe(args, tensors)
    return (described, _describe(kwargs, tensors)) if kwargs else described


def _describe(value: Any, tensors: list[tf.Tensor]) -> Any:
    """Returns all that `tf.function` would tell apart; adds the leaves to `tensors`."""
    kind = type(value)
    if kind is _EagerTensor:
        if value.dtype in _OPAQUE_DTYPES:
            raise _NotPlainError
        tensors.append(value)
        return value.dtype, value.shape
    if value is None:
        return None
    if (
        kind is tuple
        or kind is list
        or (isinstance(value, tuple) and _has_fields(kind))
    ):
        return (kind, *[_describe(leaf, tensors) for leaf in value])
    if kind is dict:
        return (kind, *[(key, _describe(value[key], tensors)) for key in value])
    raise _NotPlainError


def _has_fields(kind: type) -> bool:
    """Whether this class of tuples is one of named tuples."""
    return hasattr(kind, "_fields")
