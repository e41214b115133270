"""Calls of Python functions from a graph, in the order of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import graph_calls


class OrderedCalls:
    """Calls Python functions in the order of the program, in a graph and eagerly.

    TensorFlow runs operations that change a variable in the order of the program, but
    may run calls of Python functions in another order. So each call made by this class
    also changes a variable.
    """

    def __init__(self) -> None:
        """Creates the variable that orders the calls."""
        with tf.init_scope(), tf.device("CPU:0"):
            self._state = tf.Variable(0, dtype=tf.int64, trainable=False, name="calls")

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
        dtypes = [spec.dtype.as_numpy_dtype for spec in output_specs]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            results = function(*arrays)
            pairs = zip([] if results is None else results, dtypes, strict=True)
            return [np.asarray(result, dtype) for result, dtype in pairs]

        if tf.executing_eagerly():
            results = call(*(np.asarray(x) for x in inputs))
            return [tf.convert_to_tensor(result) for result in results]
        return call_in_order(self._state, call, inputs, output_specs)


def call_in_order(
    state: tf.Variable,
    function: Callable[..., Sequence[np.ndarray]],
    inputs: Sequence[tf.Tensor],
    output_specs: Sequence[tf.TensorSpec],
    name: str | None = None,
) -> list[tf.Tensor]:
    """Calls a Python function from a graph, in the order of the program.

    Args:
      state: The variable that orders the calls that share it. Each call reads it
        before, and assigns the same value to it after.
      function: Takes the inputs as arrays, and returns arrays of `output_specs`.
      inputs: Tensors, or values that can be converted to tensors.
      output_specs: The specs of the results; dimensions may be None.
      name: The name of the operation.
    """
    value = state.read_value()
    with tf.control_dependencies([value]):
        results = graph_calls.numpy_function(
            function, inputs, [spec.dtype for spec in output_specs], name
        )
    # A call without results is an operation.
    with tf.control_dependencies(tf.nest.flatten(results)):
        state.assign(value, read_value=False)
    if not output_specs:
        return []
    for result, spec in zip(results, output_specs, strict=True):
        result.set_shape(spec.shape)
    return results
