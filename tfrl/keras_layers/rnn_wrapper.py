"""`RNNWrapper` gives a recurrent Keras layer a state with its cell's structure."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from tfrl.keras_layers import dynamic_unroll_layer


@keras.saving.register_keras_serializable(package="tfrl")
class RNNWrapper(keras.layers.Layer):
    """Wraps a `keras.layers.RNN`, `LSTM` or `GRU`.

    `layer(inputs, initial_state=None)` returns `(outputs, final_state)`. The state has
    the structure of the cell's `state_size`, while Keras returns a flat list. Inputs
    `[B, n]` are a single step and give outputs `[B, ...]`.

    With a `reset_mask`, `DynamicUnroll` applies the layer's cell. Without it the layer
    itself is applied, which uses cuDNN if possible.
    """

    def __init__(self, layer: Any, **kwargs: Any):
        """Creates the wrapper.

        Args:
          layer: A recurrent Keras layer with `return_state` and `return_sequences`.
          **kwargs: Further arguments of a Keras layer, such as `name`.

        Raises:
          TypeError: If `layer` is not a Keras RNN layer.
          NotImplementedError: If `layer` does not return its state or the whole
            sequence, runs backwards, or is stateful.
        """
        if not isinstance(layer, keras.layers.RNN):
            raise TypeError(
                f"layer: layer is not a subclass of keras.layers.RNN: {layer!r}, "
                "expected one; wrap a cell in keras.layers.RNN or in DynamicUnroll."
            )
        for option, wanted in (
            ("return_state", True),
            ("return_sequences", True),
            ("go_backwards", False),
            ("stateful", False),
        ):
            if getattr(layer, option) != wanted:
                raise NotImplementedError(
                    f"layer: got a Keras RNN layer {layer.name!r} with "
                    f"{option}=={not wanted}, which is not supported, expected "
                    f"{option}={wanted}, since the state comes in and goes out one "
                    "step at a time when acting; make the layer so."
                )
        kwargs.setdefault("dtype", layer.dtype_policy)
        super().__init__(**kwargs)
        self.layer = layer
        # It shares the cell, so it adds no variables.
        self._unroll = dynamic_unroll_layer.DynamicUnroll(layer.cell)

    @property
    def cell(self) -> Any:
        """The cell of the wrapped layer."""
        return self.layer.cell

    @property
    def state_size(self) -> Any:
        """The nest of sizes of the state."""
        return self._unroll.state_size

    @property
    def wrapped_layer(self) -> Any:
        """The wrapped layer."""
        return self.layer

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None) -> Any:
        """Returns the initial state, `[B, ...]`.

        Args:
          inputs: A tensor that gives the batch size if `batch_size` is None.
          batch_size: The number of sequences.
        """
        return self._unroll.get_initial_state(inputs, batch_size)

    def build(self, input_shape: Any) -> None:
        """Builds the layer for inputs `[B, T, n]` or `[B, n]`."""
        if not self.layer.built:
            batch, *others = input_shape
            has_time = len(input_shape) > 2
            self.layer.build((batch, *([] if has_time else [None]), *others))
        if not self._unroll.built:
            self._unroll.build(input_shape)
            self._unroll.built = True

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
        reset_mask: Any = None,
    ) -> tuple[Any, Any]:
        """Returns `(outputs, final_state)`.

        Args:
          inputs: `[B, T, n]`, or `[B, n]` for a single step.
          initial_state: `[B, ...]`; the cell's initial state if None or `()`.
          mask: The Keras mask `[B, T]` of the wrapped layer; False skips a step.
          training: Whether dropout is on.
          reset_mask: Bool `[B, T]` (`[B]` for a single step), True where the state is
            reset before the step.

        Raises:
          ValueError: If `mask` and `reset_mask` are given together.
        """
        if reset_mask is not None:
            if mask is not None:
                raise ValueError(
                    f"{self.name}: got both mask and reset_mask, expected one of them; "
                    "leave out the mask, or reset the state yourself."
                )
            return self._unroll(
                inputs,
                initial_state=initial_state,
                reset_mask=reset_mask,
                training=training,
            )
        inputs = tf.convert_to_tensor(inputs)
        has_time = inputs.shape.rank > 2
        if not has_time:
            inputs = inputs[:, tf.newaxis]
        if initial_state is None or not tf.nest.flatten(initial_state):
            initial_state = self.get_initial_state(inputs)
        if not tf.nest.is_nested(initial_state):
            initial_state = [initial_state]
        outputs, *state = self.layer(
            inputs, initial_state=list(initial_state), mask=mask, training=training
        )
        state = tf.nest.pack_sequence_as(self.state_size, tf.nest.flatten(state))
        return outputs if has_time else outputs[:, 0], state

    @override
    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the shapes of `(outputs, final_state)`."""
        return self._unroll.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, with the layer serialized by Keras."""
        return {
            **super().get_config(),
            "layer": keras.saving.serialize_keras_object(self.layer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes a layer from the result of `get_config`."""
        layer = keras.saving.deserialize_keras_object(
            config["layer"], custom_objects=custom_objects
        )
        return cls(**{**config, "layer": layer})
