"""Calls of Python functions from graphs that XLA does not compile.

TensorFlow keeps each function that is given to `tf.numpy_function` in a `tf.function`
until the process ends, and with it every object to which the function refers, such as
an environment with its simulator and its processes. These calls keep the called objects
no longer than the graphs.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import internals

_ATTRIBUTE = "_tfrl_kept"
_threads = threading.local()


class OrderedCalls:
    """Calls Python functions in the order of the program, in a graph and eagerly.

    TensorFlow runs operations that change a variable in the order of the program, but
    may run calls of Python functions in another order. So each call made by this class
    also changes a variable.
    """

    def __init__(self) -> None:
        """Creates the variable that orders the calls."""
        self._state = order_variable()

    @tf.autograph.experimental.do_not_convert
    def __call__(
        self,
        function: Callable[..., Sequence[Any] | None],
        inputs: Sequence[tf.Tensor],
        output_specs: Sequence[tf.TensorSpec],
    ) -> list[tf.Tensor]:
        """Calls `function` and returns its results as tensors.

        Args:
          function: Takes the inputs as arrays and returns arrays or numbers, as many as
            there are `output_specs`; or None if there are none.
          inputs: Tensors, or values that can be converted to tensors.
          output_specs: The specs of the results; dimensions may be None.

        Returns:
          The results as tensors. An exception of `function` is raised unchanged in
          eager code; in a graph, TensorFlow raises a `tf.errors` error with its text.
        """
        if tf.executing_eagerly():
            results = function(*(np.asarray(x) for x in inputs))
            return [tf.convert_to_tensor(x) for x in _arrays(results, output_specs)]
        return call_in_order(self._state, function, inputs, output_specs)


def call_in_order(
    state: tf.Variable,
    function: Callable[..., Sequence[Any] | None],
    inputs: Sequence[tf.Tensor],
    output_specs: Sequence[tf.TensorSpec],
    name: str | None = None,
) -> list[tf.Tensor]:
    """Calls a Python function from a graph, in the order of the program.

    Args:
      state: The variable that orders the calls that share it. Each call reads it
        before, and assigns the same value to it after.
      function: See `OrderedCalls`.
      inputs: Tensors, or values that can be converted to tensors.
      output_specs: The specs of the results; dimensions may be None.
      name: The name of the operation.
    """

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        keep_thread_state()
        return _arrays(function(*arrays), output_specs)

    value = state.read_value()
    with tf.control_dependencies([value]):
        results = numpy_function(
            call, inputs, [spec.dtype for spec in output_specs], name
        )
    # A call without results is an operation.
    with tf.control_dependencies(tf.nest.flatten(results)):
        state.assign(value, read_value=False)
    if not output_specs:
        return []
    for result, spec in zip(results, output_specs, strict=True):
        result.set_shape(spec.shape)
    return results


def order_variable() -> tf.Variable:
    """Returns a variable that orders the calls which read and assign it."""
    with tf.init_scope(), tf.device("CPU:0"):
        return tf.Variable(0, dtype=tf.int64, trainable=False, name="calls")


def _arrays(
    results: Sequence[Any] | None, specs: Sequence[tf.TensorSpec]
) -> list[np.ndarray]:
    """Returns a function's results as arrays of the dtypes of `specs`."""
    pairs = zip([] if results is None else results, specs, strict=True)
    return [np.asarray(result, spec.dtype.as_numpy_dtype) for result, spec in pairs]


def keep_thread_state() -> None:
    """Keeps this thread's Python state until the process ends; call it at each entry.

    CPython makes a state for a foreign thread that calls into it, and frees it when the
    call returns. Making one takes several times as long as a step of a small
    environment. This function takes a second reference to the state, so that the state
    stays for the next call. It does not change threads that have their own state,
    such as the main thread.
    """
    if not hasattr(_threads, "state"):
        # Never released, on purpose. The interpreter lock is released as usual.
        _threads.state = ctypes.pythonapi.PyGILState_Ensure()


def keep_in_graphs(thing: Any) -> bool:
    """Keeps an object alive as long as the graph being built, or an outer graph.

    Returns:
      False if there is no `tf.function` around, so that nothing keeps the object.
    """
    # Of two nested functions, either may live longer than the other.
    graph, found = tf.compat.v1.get_default_graph(), False
    while hasattr(graph, "outer_graph"):
        if not hasattr(graph, _ATTRIBUTE):
            setattr(graph, _ATTRIBUTE, [])
        getattr(graph, _ATTRIBUTE).append(thing)
        graph, found = graph.outer_graph, True
    return found


# AutoGraph would keep the functions that it converts.
@tf.autograph.experimental.do_not_convert
def numpy_function(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    dtypes: Any,
    name: str | None = None,
) -> Any:
    """Calls a Python function like `tf.numpy_function`, without keeping it for ever.

    Args:
      function: A function of arrays that returns arrays.
      inputs: The tensors to pass.
      dtypes: The dtypes of the results.
      name: The name of the operation.
    """
    registered = internals.register_py_function(function)
    if registered is not None:
        kept, token = registered
        if keep_in_graphs(kept):
            return _call_registered(token, inputs, dtypes, name)
    kept = _Kept(function)
    if not keep_in_graphs(kept):
        return tf.numpy_function(function, inputs, dtypes, name=name)
    reference = weakref.ref(kept)

    def call(*arrays: Any) -> Any:
        kept = reference()
        # The graph that runs the call keeps it.
        assert kept is not None
        return kept.function(*arrays)

    return tf.numpy_function(call, inputs, dtypes, name=name)


def _call_registered(
    token: str, inputs: Sequence[Any], dtypes: Any, name: str | None
) -> Any:
    several = isinstance(dtypes, (list, tuple))
    results = tf.raw_ops.PyFunc(
        input=[tf.convert_to_tensor(value) for value in inputs],
        token=token,
        Tout=list(dtypes) if several else [dtypes],
        name=name,
    )
    return results if several else results[0]


class _Kept:
    """Holds a function, because weak references to bound methods do not last."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
