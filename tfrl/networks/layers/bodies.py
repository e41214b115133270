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
import tensorflow as tf

from tfrl.keras_layers import batch_renorm
from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer

# Makes a dense layer of some units without activation, perhaps with an initialiser.
Dense = Callable[..., keras.layers.Layer]
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


def layer_normed_before(
    sizes: Sequence[int], dense: Dense, activation_fn: Any, dtype: Any = None
) -> list[keras.layers.Layer]:
    """Makes dense layers, with a normalization without weights before each activation.

    Fujimoto et al., "Towards general-purpose model-free reinforcement learning" (2025,
    arXiv:2501.16142), appendix B. The arguments are as for `batch_renormed`.
    """
    layers = []
    for units in sizes:
        norm = keras.layers.LayerNormalization(
            epsilon=1e-5, center=False, scale=False, dtype=dtype
        )
        activation = keras.layers.Activation(activation_fn, dtype=dtype)
        layers += [dense(units), norm, activation]
    return layers


@keras.saving.register_keras_serializable("tfrl")
class Residual(recorded_layer.RecordedLayer):
    """Adds the output of layers, called in turn, to their input."""

    def __init__(self, layers: Sequence[keras.layers.Layer], **kwargs: Any):
        """Creates the layer.

        Args:
          layers: The layers; the last one has as many outputs as the first has inputs.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.layers = list(layers)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the sum."""
        outputs = inputs
        for layer in self.layers:
            outputs = layer(outputs)
        return inputs + outputs


def simba(
    sizes: Sequence[int], dense: Dense, activation_fn: Any, dtype: Any = None
) -> list[keras.layers.Layer]:
    """Makes residual blocks of two dense layers, and normalizations without weights.

    A block normalizes its input, and has four times as many units inside. Lee et al.,
    "SimBa: simplicity bias for scaling up parameters in deep reinforcement learning"
    (2025, arXiv:2410.09754), section 4. The arguments are as for `batch_renormed`.

    Raises:
      ValueError: The sizes, one for each block, differ.
    """
    if len(set(sizes)) != 1:
        raise ValueError(
            f"sizes: got {tuple(sizes)}, expected the same number of units for each "
            "residual block, such as (128,) or (512, 512); set the layers' sizes."
        )

    def norm() -> keras.layers.Layer:
        # The next layer scales and shifts.
        return keras.layers.LayerNormalization(
            epsilon=1e-6, center=False, scale=False, dtype=dtype
        )

    def block(units: int) -> keras.layers.Layer:
        inner = [
            norm(),
            dense(4 * units, keras.initializers.HeNormal()),
            keras.layers.Activation(activation_fn, dtype=dtype),
            dense(units, keras.initializers.HeNormal()),
        ]
        return Residual(inner, dtype=dtype)

    first = dense(sizes[0], keras.initializers.Orthogonal())
    return [first, *map(block, sizes), norm()]
