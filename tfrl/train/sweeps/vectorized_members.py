"""Applies the parts of a loop's iteration to many runs in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.compilation import (
    internals,
    variable_substitution,
    vectorized_map_converters,
)
from tfrl.train.loops import iteration_transform
from tfrl.utils import common

if TYPE_CHECKING:
    from tfrl.typing import types


class VectorizedMembers(iteration_transform.IterationTransform):
    """Applies functions of one run to all runs, whose variables are stacked."""

    def __init__(self, run_variables: Sequence[tf.Variable], number: int) -> None:
        """Creates the transform.

        Args:
          run_variables: The variables of one run.
          number: The number of runs.

        Raises:
          MissingNameError: The installed TensorFlow lacks a private name that sweeps
            need.
        """
        internals.check_sweeps()
        self._variables = run_variables
        self._number = number
        self.values: list[tf.Tensor] = []

    def broadcast(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns `tensor` `[...]` repeated for each run, `[N, ...]`."""
        return tf.broadcast_to(tensor, [self._number, *tensor.shape])

    def apply(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Returns `function(*inputs)` of every run; assignments update `values`."""

        @tf.autograph.experimental.do_not_convert
        def one(arguments: tuple[list[tf.Tensor], list[tf.Tensor]]) -> Any:
            values, flat = arguments
            with variable_substitution.substituted(
                self._variables, values
            ) as substitute:
                outputs = function(*tf.nest.pack_sequence_as(inputs, flat))
            return substitute.tensors(), outputs

        with vectorized_map_converters.conversions():
            self.values, outputs = tf.vectorized_map(
                one, (self.values, tf.nest.flatten(inputs)), warn=False
            )
        return outputs

    def _shape_of_all(self, shape: tf.TensorShape) -> tf.TensorShape:
        return tf.TensorShape([self._number, *shape])

    def _stack(self, array: tf.TensorArray) -> tf.Tensor:
        return common.transpose_batch_time(array.stack())

    def loop(
        self,
        condition: Callable[..., tf.Tensor],
        body: Callable[..., Any],
        carried: tuple[types.NestedTensor, ...],
    ) -> Any:
        """Repeats `carried = body(i, *carried)` while `condition(i, *carried)`.

        The loop also carries the values of the runs' variables.
        """

        def step(i: tf.Tensor, values: Any, carried: Any) -> tuple[Any, ...]:
            self.values = values
            carried = tuple(body(i, *carried))
            return i + 1, self.values, carried

        _, self.values, carried = tf.while_loop(
            lambda i, _, carried: condition(i, *carried),
            step,
            (tf.constant(0), self.values, carried),
        )
        return carried
