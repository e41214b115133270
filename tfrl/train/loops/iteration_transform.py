"""Applies the parts of a loop's iteration to the tensors of one run.

A loop is written as functions of the state of one run. `IterationTransform` calls these
functions as they are; its subclass for sweeps applies each function to many runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.compilation import accelerators

if TYPE_CHECKING:
    from tfrl.typing import types


class IterationTransform:
    """Applies functions to the tensors of one run, once or repeatedly."""

    def broadcast(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns a copy of `tensor` for each run; here `tensor` itself."""
        return tensor

    def apply(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Returns `function(*inputs)`, for nests of tensors."""
        return function(*inputs)

    def repeat(
        self,
        times: tf.Tensor | int,
        function: Callable[..., Any],
        carried: tuple[types.NestedTensor, ...],
        fixed: tuple[types.NestedTensor, ...] = (),
    ) -> Any:
        """Repeats `carried = function(i, *carried, *fixed)` for `i` from 0 on.

        Args:
          times: The number of repetitions. For the Python number 1, no loop is built.
          function: Takes an int32 scalar and nests of tensors; returns a tuple like
            `carried`.
          carried: The initial values.
          fixed: Inputs that are the same at every step.

        Returns:
          `carried` after the last step.
        """
        if isinstance(times, int) and times == 1:
            zero = tf.constant(0)
            return self.apply(lambda *x: function(zero, *x), *carried, *fixed)
        limit = tf.cast(times, tf.int32)
        fixed, restored = accelerators.carried(fixed)
        return self.loop(
            lambda i, *_: i < limit,
            lambda i, *c: self.apply(lambda *x: function(i, *x), *c, *restored(fixed)),
            carried,
        )

    def scan(
        self,
        times: int,
        function: Callable[..., tuple[tuple[Any, ...], Any]],
        carried: tuple[types.NestedTensor, ...],
        output_spec: types.NestedTensorSpec,
    ) -> tuple[tuple[Any, ...], Any]:
        """Repeats `carried, output = function(i, *carried)` and stacks the outputs.

        Args:
          times: The number of repetitions, for `i` from 0 on.
          function: Takes an int32 scalar and nests of tensors; returns a tuple like
            `carried`, and a nest.
          carried: The initial values.
          output_spec: The nest of specs of one output.

        Returns:
          `carried` after the last step, and the outputs, `[times, ...]`.
        """
        arrays = [
            tf.TensorArray(
                spec.dtype, times, element_shape=self._shape_of_all(spec.shape)
            )
            for spec in tf.nest.flatten(output_spec)
        ]

        def step(i: tf.Tensor, carried: Any, arrays: list[Any]) -> tuple[Any, Any]:
            carried, output = self.apply(lambda *c: function(i, *c), *carried)
            written = [
                array.write(i, leaf)
                for array, leaf in zip(arrays, tf.nest.flatten(output), strict=True)
            ]
            return carried, written

        carried, arrays = self.loop(lambda i, *_: i < times, step, (carried, arrays))
        outputs = [self._stack(array) for array in arrays]
        return carried, tf.nest.pack_sequence_as(output_spec, outputs)

    def _shape_of_all(self, shape: tf.TensorShape) -> tf.TensorShape:
        """Returns the shape for all runs of a tensor of one run."""
        return shape

    def _stack(self, array: tf.TensorArray) -> tf.Tensor:
        """Returns the outputs written in each step, `[times, ...]` for each run."""
        return array.stack()

    def loop(
        self,
        condition: Callable[..., tf.Tensor],
        body: Callable[..., Any],
        carried: tuple[types.NestedTensor, ...],
    ) -> Any:
        """Repeats `carried = body(i, *carried)` while `condition(i, *carried)`.

        `i` is an int32 scalar, which TensorFlow keeps in the host's memory. Even for a
        GPU, it compares and adds int32 there, and needs the positions of slices there.
        """
        _, carried = accelerators.while_loop(
            lambda i, c: condition(i, *c),
            lambda i, c: (i + 1, tuple(body(i, *c))),
            (tf.constant(0), carried),
        )
        return carried
