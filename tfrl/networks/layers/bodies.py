"""Bodies: the hidden layers of a network, where plain dense layers do not do.

A body is a function of the sizes of the layers, of a function that makes a dense layer,
of the activation and of the dtype. It returns the layers, which are called in turn. The
dense layers may be `StackedDense`, so that a body serves actors and ensembles of
critics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from tfrl.keras_layers import batch_renorm
from tfrl.networks import utils

# Makes a dense layer of some units without activation.
Dense = Callable[[int], keras.layers.Layer]
Body = Callable[[Sequence[int], Dense, Any, Any], list[keras.layers.Layer]]


def batch_renormed(
    sizes: Sequence[int],
    dense: Dense,
    activation_fn: Any,
    dtype: Any = None,
    **arguments: Any,
) -> list[keras.layers.Layer]:
    """Makes dense layers whose inputs are normalized by `BatchRenorm`.

    There is one more normalization after the last activation, for the head. Bhatt et
    al., "CrossQ: batch normalization in deep reinforcement learning" (2024,
    arXiv:1902.05605), section 3.

    Args:
      sizes: The units of each layer.
      dense: Makes a dense layer of some units.
      activation_fn: The activation of the layers.
      dtype: The dtype of the other layers, or a Keras dtype policy.
      **arguments: Arguments of `BatchRenorm`.
    """

    def norm() -> keras.layers.Layer:
        return batch_renorm.BatchRenorm(dtype=dtype, **arguments)

    layers = [norm()]
    for units in sizes:
        activation = keras.layers.Activation(activation_fn, dtype=dtype)
        layers += [dense(units), activation, norm()]
    return layers


def layer_normed(
    sizes: Sequence[int], dense: Dense, activation_fn: Any, dtype: Any = None
) -> list[keras.layers.Layer]:
    """Makes dense layers, with a layer normalization after each activation.

    Tarasov et al., "Revisiting the minimalist approach to offline reinforcement
    learning" (2023, arXiv:2305.09836), section 3. The arguments are as for
    `batch_renormed`.
    """
    layers = []
    for units in sizes:
        activation = keras.layers.Activation(activation_fn, dtype=dtype)
        layers += [dense(units), activation, utils.layer_normalization(dtype)]
    return layers
