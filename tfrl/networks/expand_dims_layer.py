"""`ExpandDims`, a layer like `tf.expand_dims` that keeps the batch dimension first."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("tfrl")
class ExpandDims(keras.layers.Layer):
    """Adds a dimension of size 1."""

    def __init__(self, axis: int, **kwargs: Any):
        """Creates the layer.

        Args:
          axis: The position of the new dimension among the dimensions after the batch:
            0 turns `[B, ...]` into `[B, 1, ...]`. A negative position counts from the
            right; -1 adds a last dimension.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.axis = int(axis)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns `inputs` with the new dimension."""
        return tf.expand_dims(inputs, self.axis + (self.axis >= 0))

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns `input_shape` with the new dimension."""
        shape = list(input_shape)
        place = self.axis + 1 if self.axis >= 0 else len(shape) + 1 + self.axis
        return (*shape[:place], 1, *shape[place:])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "axis": self.axis}
