"""A `tf.function` that finds the trace for its arguments in less time.

For every call `tf.function` binds the arguments to the signature, describes each by a
trace type, and hashes and compares these types. For a nest of six tensors this takes
longer than running a small graph. A fast function maps the classes, dtypes and shapes
of arguments to a trace, and runs that trace directly. Everything else is left to
`tf.function`: tracing, relaxed shapes, creating variables, gradients.

Only eager calls with nests of dense tensors, arrays and `None`, outside of any
distribution strategy, are remembered. All other calls go through `tf.function`. So do
all calls if a release of TensorFlow moves or changes the private names that this module
needs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import internals, program_cache, trace_counts

# The limit for functions whose arguments have another shape at every call.
_MOST_TRACES = 64

_OPAQUE_DTYPES = frozenset((tf.resource, tf.variant))


def fast_function(
    func: Callable[..., Any] | None = None, *, label: str = "", **kwargs: Any
) -> Any:
    """Returns a `tf.function` whose calls take less time; also works as a decorator.

    Args:
      func: The function.
      label: What tells the function's program from those of other objects of its class,
        for the cache of compiled programs.
      **kwargs: Arguments of `tf.function`.
    """
    if func is None:
        return lambda decorated: fast_function(decorated, label=label, **kwargs)
    names = program_cache.ProgramNames(f"{_describe_function(func)} {label}")
    func = trace_counts.of_one_object(func)
    function: Any = tf.function(func, **kwargs)
    try:
        # Keeps the object that tf.function made, so that only calls differ.
        internals.change_class(function, _fast_class(function.__class__))
    except Exception:
        return tf.function(func, **kwargs)
    function.program_names = names
    return function


def _describe_function(function: Callable[..., Any]) -> str:
    owner = type(getattr(function, "__self__", None)).__qualname__
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{owner} {name}"


@functools.cache
def _fast_class(kind: Any) -> Any:
    """Returns the subclass of the class of `tf.function`s that remembers traces."""

    class FastFunction(kind):
        # Maps the description of the arguments to a function that runs the trace on
        # their tensors. It is None after the first call, because a fast path is
        # prepared at the second call, and False if there is no fast path for these
        # arguments.
        _fast_paths: dict[Any, Any] | None = None
        # Set once a fast path has failed.
        _is_plain = False
        # The class makes further functions itself, for methods of objects.
        program_names: program_cache.ProgramNames | None = None

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if (
                self._is_plain
                or not tf.executing_eagerly()
                or tf.config.functions_run_eagerly()
                or tf.distribute.has_strategy()
            ):
                return super().__call__(*args, **kwargs)
            tensors: list[tf.Tensor] = []
            try:
                key = _describe_call(args, kwargs, tensors)
            except _NotPlainError:
                with _named(self):
                    return super().__call__(*args, **kwargs)
            paths = self._fast_paths
            if paths is None or len(paths) > _MOST_TRACES:
                paths = self._fast_paths = {}
            run = paths.get(key)
            if run:
                try:
                    return run(tensors)
                except TypeError:
                    # In the installed release, traces take different arguments.
                    self._is_plain = True
                    return super().__call__(*args, **kwargs)
            with _named(self):
                result = super().__call__(*args, **kwargs)
            if key not in paths:
                paths[key] = None
            elif run is None:
                paths[key] = _fast_path(self, args, kwargs)
            return result

        def __getstate__(self) -> dict[str, Any]:
            state = super().__getstate__()
            state.pop("_fast_paths", None)
            return state

    return FastFunction


def _named(function: Any) -> contextlib.AbstractContextManager[None]:
    """Returns a context for a function's traces, which names what they contain."""
    if function.program_names is None:
        label = _describe_function(function.python_function)
        function.program_names = program_cache.ProgramNames(label)
    return function.program_names.used()


def _fast_path(function: Any, args: Any, kwargs: Any) -> Any:
    """Returns a callable that runs the cached trace for arguments like these, or False.

    The callable takes the arguments' tensors in the order of `_describe_call`.
    """
    try:
        # Calls with new, distinct tensors show which argument becomes which input of
        # the trace.
        args, kwargs = tf.nest.map_structure(
            lambda leaf: None if leaf is None else tf.identity(leaf), (args, kwargs)
        )
        tensors: list[tf.Tensor] = []
        _describe_call(args, kwargs, tensors)
        found = internals.find_trace(function, args, kwargs)
        if found is None:
            return False
        run, inputs, captured = found
        places = {id(tensor): i for i, tensor in enumerate(tensors)}
        order = [places[id(tensor)] for tensor in inputs]
    except Exception:
        return False
    if order == list(range(len(tensors))):
        return lambda tensors: run(tensors, captured)
    return lambda tensors: run([tensors[i] for i in order], captured)


class _NotPlainError(Exception):
    """Not only dense tensors, arrays, None, tuples, lists and dicts are given."""


@functools.cache
def _eager_tensor_class() -> type:
    # Not computed at import, because making a tensor starts TensorFlow's runtime.
    return type(tf.constant(0))


def _describe_call(args: Any, kwargs: Any, tensors: list[tf.Tensor]) -> Any:
    tensor_class = _eager_tensor_class()
    described = _describe(args, tensors, tensor_class)
    if not kwargs:
        return described
    return described, _describe(kwargs, tensors, tensor_class)


def _describe(value: Any, tensors: list[tf.Tensor], tensor_class: type) -> Any:
    """Returns a key for the nest `value`, and appends its tensors to `tensors`.

    The keys of two nests differ if `tf.function` could use different traces for them.
    """
    kind = type(value)
    if kind is np.ndarray:
        tensors.append(_as_tensor(value))
        return value.dtype, value.shape
    if kind is tensor_class:
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
        return (kind, *[_describe(leaf, tensors, tensor_class) for leaf in value])
    if kind is dict:
        return (
            kind,
            *[(key, _describe(value[key], tensors, tensor_class)) for key in value],
        )
    raise _NotPlainError


def _as_tensor(array: np.ndarray) -> tf.Tensor:
    # tf.function converts arrays, too, so that both have the same trace.
    try:
        return internals.eager_tensor(array)
    except (TypeError, ValueError):
        raise _NotPlainError from None


def _has_fields(kind: type) -> bool:
    """Whether a subclass of `tuple` is a named tuple."""
    return hasattr(kind, "_fields")
