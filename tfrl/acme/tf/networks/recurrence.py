"""Recurrent networks, and critics that take their inputs one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from tfrl.networks.construction import recorded_layer
from tfrl.networks.sequential import Sequential as Sequential

DeepRNN = Sequential


def LSTM(hidden_size: int, **kwargs: Any) -> keras.layers.LSTMCell:
    """Returns a Keras cell; `hidden_size` is Sonnet's name of its `units`."""
    return keras.layers.LSTMCell(hidden_size, **kwargs)


@keras.saving.register_keras_serializable("tfrl")
class UnpackWrapper(recorded_layer.RecordedLayer):
    """Calls a layer or function of several arguments with the parts of a tuple.

    >>> import tensorflow as tf
    >>> UnpackWrapper(tf.add)((tf.constant([1.0]), tf.constant([2.0]))).numpy().tolist()
    [3.0]
    """

    def __init__(self, module: Callable[..., Any], **kwargs: Any):
        """Takes the module, which is not copied, so that weights can be shared.

        Args:
          module: A Keras layer without a state, or a function.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**{"autocast": False, **kwargs})
        self.module = module

    def call(self, inputs: Any) -> Any:
        """Returns `module(*inputs)`.

        Args:
          inputs: A tuple or list of nests of tensors.
        """
        return self.module(*inputs)
