"""`InnerReshape` reshapes the dimensions after any number of outer dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("tfrl")
class InnerReshape(keras.layers.Layer):
    """Turns `outer_shape + current_shape` into `outer_shape + new_shape`.

    Keras' own `Reshape` supports one outer dimension; this layer supports `[B, ...]`
    and `[B, T, ...]`, for example between `Dense`, `Conv2D` and recurrent layers. In a
    nest every tensor is reshaped.
    """

    def __init__(
        self,
        current_shape: Sequence[int | None],
        new_shape: Sequence[int | None],
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          current_shape: The inner shape of the inputs; a dimension of None may have any
            size.
          new_shape: The inner shape of the outputs, with one -1 (or None) at most.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If a shape has unknown rank, `new_shape` has several unknown
            dimensions, or fully known shapes differ in their number of elements.
        """
        super().__init__(**kwargs)
        current, new = tf.TensorShape(current_shape), _as_shape(new_shape)
        for name, shape in (("current_shape", current), ("new_shape", new)):
            if shape.rank is None:
                raise ValueError(
                    f"{name}: got a shape of unknown rank, expected {name} must have "
                    "known rank; list its dimensions, None where one is unknown."
                )
        if list(new).count(None) > 1:
            raise ValueError(
                f"new_shape: got {list(new_shape)}, expected one unknown dimension at "
                "most; give the others their sizes."
            )
        _check_sizes(current, new)
        self.current_shape: list[int | None] = current.as_list()
        self.new_shape: list[int | None] = new.as_list()

    def call(self, inputs: Any) -> Any:
        """Reshapes every tensor of the nest `inputs`."""
        return tf.nest.map_structure(self._reshape, inputs)

    def _reshape(self, tensor: tf.Tensor) -> tf.Tensor:
        outer, inner = self._split(tensor.shape)
        new = [-1 if size is None else size for size in self.new_shape]
        num_outer = len(outer)
        reshaped = tf.reshape(
            tensor, tf.concat([tf.shape(tensor)[:num_outer], new], axis=0)
        )
        reshaped.set_shape([*outer, *self._resolve(inner)])
        return reshaped

    def _split(self, shape: Any) -> tuple[list[int | None], list[int | None]]:
        """Splits a shape into its outer and inner part, and checks the inner part."""
        sizes = list(shape)
        num_outer = len(sizes) - len(self.current_shape)
        outer, inner = sizes[: max(num_outer, 0)], sizes[max(num_outer, 0) :]
        if num_outer < 0 or not tf.TensorShape(inner).is_compatible_with(
            self.current_shape
        ):
            raise ValueError(
                f"{self.name}: got inputs of shape {tuple(sizes)}, expected them to "
                f"end in current_shape {self.current_shape}; correct current_shape, "
                "with None where a size varies."
            )
        return outer, inner

    def _resolve(self, inner: list[int | None]) -> list[int | None]:
        """Returns the new shape, with its unknown dimension computed if possible."""
        sizes = [size for size in self.new_shape if size is not None]
        if None in inner or len(sizes) == len(self.new_shape) or 0 in sizes:
            return self.new_shape
        rest = math.prod(size or 0 for size in inner) // math.prod(sizes)
        return [rest if size is None else size for size in self.new_shape]

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of the output, with None for unknown dimensions."""
        outer, inner = self._split(input_shape)
        return (*outer, *self._resolve(inner))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "current_shape": self.current_shape,
            "new_shape": self.new_shape,
        }


def _as_shape(shape: Any) -> tf.TensorShape:
    if isinstance(shape, tf.TensorShape):
        return shape
    return tf.TensorShape([None if size in (-1, None) else size for size in shape])


def _check_sizes(current: tf.TensorShape, new: tf.TensorShape) -> None:
    known = current.is_fully_defined() and new.is_fully_defined()
    if known and current.num_elements() != new.num_elements():
        raise ValueError(
            f"new_shape: got {new.as_list()} for current_shape {current.as_list()}, "
            "expected as many elements: Mismatched number of elements in current and "
            "new inner shapes; correct one, or put -1 in new_shape."
        )
