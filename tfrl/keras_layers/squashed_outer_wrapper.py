"""`SquashedOuterWrapper` applies a layer to inputs with several batch dimensions."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("tfrl")
class SquashedOuterWrapper(keras.layers.Layer):
    """Folds outer dimensions into one for a layer, and unfolds its output.

    All but the last `inner_rank` dimensions are outer dimensions: with `inner_rank=3`
    the wrapped layer sees `[B * T, H, W, C]` for inputs `[B, T, H, W, C]`.
    """

    def __init__(self, wrapped: keras.layers.Layer, inner_rank: int, **kwargs: Any):
        """Creates the wrapper.

        Args:
          wrapped: A Keras layer with one input and one output.
          inner_rank: The number of dimensions of the layer's input after the batch
            dimension.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If `wrapped` is recurrent.
        """
        if hasattr(wrapped, "get_initial_state"):
            raise ValueError(
                f"wrapped: got {wrapped!r}, which takes a state, expected a layer "
                "without one: `wrapped` has method `get_initial_state`; recurrent "
                "layers fold outer dimensions themselves."
            )
        super().__init__(**kwargs)
        self._inner_rank = inner_rank
        self._wrapped = wrapped

    @property
    def inner_rank(self) -> int:
        """The number of dimensions of the wrapped layer's input after the batch."""
        return self._inner_rank

    @property
    def wrapped(self) -> keras.layers.Layer:
        """The wrapped layer."""
        return self._wrapped

    def build(self, input_shape: Any) -> None:
        """Builds the wrapped layer for inputs with one outer dimension."""
        if not self._wrapped.built:
            self._wrapped.build((None, *self._inner_shape(input_shape)))

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Applies the wrapped layer to `inputs` with their outer dimensions folded."""
        num_outer = inputs.shape.rank - self._inner_rank
        if num_outer == 1:
            return self._wrapped(inputs, training=training)
        sizes, inner = tf.shape(inputs), inputs.shape[num_outer:]
        folded = tf.reshape(inputs, tf.concat([[-1], sizes[num_outer:]], axis=0))
        outputs = self._wrapped(
            tf.ensure_shape(folded, [None, *inner]), training=training
        )
        unfolded = tf.reshape(
            outputs, tf.concat([sizes[:num_outer], tf.shape(outputs)[1:]], axis=0)
        )
        return tf.ensure_shape(
            unfolded, [*inputs.shape[:num_outer], *outputs.shape[1:]]
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the outer dimensions and the wrapped layer's output shape."""
        inner = self._inner_shape(input_shape)
        outer = tuple(input_shape)[: len(input_shape) - len(inner)]
        return (*outer, *self._wrapped.compute_output_shape((None, *inner))[1:])

    def _inner_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        sizes = tuple(input_shape)
        return sizes[len(sizes) - self._inner_rank :]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, with the wrapped layer serialized."""
        return {
            **super().get_config(),
            "wrapped": keras.saving.serialize_keras_object(self._wrapped),
            "inner_rank": self._inner_rank,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> SquashedOuterWrapper:
        """Creates the layer from the result of `get_config`."""
        wrapped = keras.saving.deserialize_keras_object(
            config["wrapped"], custom_objects=custom_objects
        )
        return cls(**{**config, "wrapped": wrapped})
