"""Functions for recurrent Keras layers in networks: state specs and resets."""

from __future__ import annotations

import itertools
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.keras_layers import dynamic_unroll_layer, rnn_wrapper

# The value of `tfrl.trajectories.time_step.StepType.FIRST`.
_FIRST = 0


def is_recurrent(layer: Any) -> bool:
    """Whether a Keras layer or cell has a recurrent state."""
    return hasattr(layer, "state_size")


def as_recurrent(layer: Any) -> Any:
    """Returns a layer that takes `initial_state` and `reset_mask`.

    A Keras RNN layer is wrapped in `RNNWrapper`, a cell in `DynamicUnroll`. An
    `RNNWrapper` or a `DynamicUnroll` is returned unchanged.

    Raises:
      TypeError: If `layer` is anything else.
    """
    unrolls = rnn_wrapper.RNNWrapper | dynamic_unroll_layer.DynamicUnroll
    if isinstance(layer, unrolls):
        return layer
    if isinstance(layer, keras.layers.RNN):
        return rnn_wrapper.RNNWrapper(layer, name=layer.name)
    return dynamic_unroll_layer.DynamicUnroll(layer)


def state_spec(layer: Any) -> Any:
    """Returns the specs of a recurrent layer's state, in the cell's structure.

    Raises:
      TypeError: If `layer` is a Keras RNN layer that is not wrapped.
    """
    if isinstance(layer, keras.layers.RNN):
        raise TypeError(
            f"{layer.name}: got the recurrent Keras layer {type(layer).__name__}, "
            "expected it wrapped, since the structure of its state differs from that "
            "of its cell; write tfrl.keras_layers.RNNWrapper(layer)."
        )
    dtype = tf.as_dtype(layer.compute_dtype)
    return tf.nest.map_structure(
        lambda size: tf.TensorSpec(size, dtype),
        dynamic_unroll_layer.plain(layer.state_size),
    )


def named(specs: Any) -> Any:
    """Returns the specs of a state with the names `network_state_0` and so on."""
    counter = itertools.count()
    return tf.nest.map_structure(
        lambda spec: tf.TensorSpec(
            spec.shape, spec.dtype, name=f"network_state_{next(counter)}"
        ),
        specs,
    )


def reset_mask(step_type: Any) -> Any:
    """Returns the mask of FIRST steps, bool `[B]` or `[B, T]`; None if unknown."""
    return accelerators.equal(step_type, _FIRST) if tf.is_tensor(step_type) else None
