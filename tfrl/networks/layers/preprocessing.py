"""Turns observations of any spec into one vector, for networks of dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import array_spec, tensor_spec
from tfrl.typing import types

# The longest one-hot vector of an observation. A wider integer is a number.
_MAX_ONE_HOT = 10_000
# The largest image for dense layers. With a larger image, a layer of 100 units would
# have a million weights.
_MAX_IMAGE = 10_000


def default_preprocessing(
    observation_spec: types.NestedTensorSpec,
) -> tuple[types.NestedLayer | None, keras.layers.Layer | None]:
    """Makes layers that turn each observation into a vector, and their combiner.

    The results are the `preprocessing_layers` and the `preprocessing_combiner` for
    `EncodingNetwork` and for networks that contain one:

    - A bounded integer becomes a one-hot vector. An array of bounded integers, such as
      for a `MultiDiscrete` space, becomes a one-hot vector for each element. One-hot
      vectors have up to 10,000 numbers in all.
    - A uint8 array of two or more dimensions is an image: it is scaled to [0, 1].
    - All other observations are cast to floats: booleans, arrays of zeros and ones,
      arrays of single bytes, and integers with more values.

    Each observation is flattened, and the parts of a nest are concatenated. A single
    float observation needs no layer.

    Args:
      observation_spec: The nest of tensor specs of one observation.

    Returns:
      The pair `(layers, combiner)`. Both are None for a single float observation, and
      the combiner is None if there is only one observation.

    Raises:
      ValueError: If an observation is not of numbers or booleans, or is an image of
        more than 10,000 numbers, which needs convolutions.
    """
    flat = tf.nest.flatten(observation_spec)
    if not tf.nest.is_nested(observation_spec):
        needs_layer = not flat[0].dtype.is_floating
        return (make_layer((), flat[0]) if needs_layer else None), None
    layers = tree.map_structure_with_path(make_layer, observation_spec)
    return layers, keras.layers.Concatenate() if len(flat) > 1 else None


@keras.saving.register_keras_serializable("tfrl")
class OneHot(keras.layers.Layer):
    """Maps integers `[B, ...]` to floats `[B, n]`: a one-hot vector for each element.

    The vectors of an array's elements follow each other, row by row. The length of each
    vector is the number of values of its element. An integer outside its bounds becomes
    zeros.
    """

    def __init__(self, minimum: Sequence[int], maximum: Sequence[int], **kwargs: Any):
        """Creates the layer.

        Args:
          minimum: The least value of each element.
          maximum: The greatest value of each element.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.minimum = [int(value) for value in minimum]
        self.maximum = [int(value) for value in maximum]
        ranges = [
            np.arange(low, high + 1, dtype=np.int64)
            for low, high in zip(self.minimum, self.maximum, strict=True)
        ]
        # Entry j of the output is 1 if element `_elements[j]` is `_values[j]`, else 0.
        self._values = np.concatenate(ranges)
        self._elements = np.repeat(np.arange(len(ranges)), [len(r) for r in ranges])

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the one-hot vectors, `[B, n]`."""
        flat = tf.reshape(tf.cast(inputs, tf.int64), [-1, len(self.minimum)])
        equal = tf.equal(tf.gather(flat, self._elements, axis=1), self._values)
        return tf.cast(equal, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, int]:
        """Returns `(B, n)`."""
        return input_shape[0], len(self._values)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "minimum": self.minimum,
            "maximum": self.maximum,
        }


def make_layer(path: tuple[Any, ...], spec: tf.TensorSpec) -> keras.layers.Layer:
    """Makes the layer of `default_preprocessing` for one observation.

    Args:
      path: The path of the observation in its nest, for messages.
      spec: The spec of the observation.

    Raises:
      ValueError: See `default_preprocessing`.
    """
    where = "/".join(["observation_spec", *map(str, path)])
    dtype = spec.dtype
    if not (dtype.is_floating or dtype.is_integer or dtype.is_bool):
        raise ValueError(
            f"{where}: got {spec}, expected numbers or booleans; encode it as numbers "
            "in an environment wrapper, or give the network preprocessing_layers."
        )
    if dtype.is_floating:
        return keras.layers.Flatten()
    bounded = array_spec.BoundedArraySpec.from_spec(tensor_spec.to_array_spec(spec))
    if dtype == tf.uint8 and len(bounded.shape) >= 2:
        _check_image(where, bounded.shape)
        return _to_floats(int(bounded.minimum.min()), int(bounded.maximum.max()))
    return one_hot(spec) or _to_floats(0, 1)


def one_hot(spec: tf.TensorSpec) -> OneHot | None:
    """Makes the layer for observations that are choices; None for other ones.

    Args:
      spec: The spec of one observation, of numbers or booleans.
    """
    bounded = array_spec.BoundedArraySpec.from_spec(tensor_spec.to_array_spec(spec))
    if not _is_choice(bounded):
        return None
    low, high = (
        np.broadcast_to(bound, bounded.shape).ravel()
        for bound in (bounded.minimum, bounded.maximum)
    )
    return OneHot(low.tolist(), high.tolist())


def _is_choice(spec: array_spec.BoundedArraySpec) -> bool:
    """Whether the elements of a spec are choices, not numbers, bytes or bits."""
    if not array_spec.is_discrete(spec):
        return False
    is_bits = spec.minimum.min() >= 0 and spec.maximum.max() <= 1
    if spec.shape and (spec.dtype.itemsize == 1 or is_bits):
        return False
    return bool(spec.num_values.sum(dtype=np.float64) <= _MAX_ONE_HOT)


def _to_floats(low: int, high: int) -> keras.layers.Layer:
    """Makes a layer that maps [low, high] to [0, 1] and flattens."""
    scale = 1 / max(high - low, 1)
    return keras.Sequential(
        [keras.layers.Rescaling(scale, -low * scale), keras.layers.Flatten()]
    )


def _check_image(where: str, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    if size > _MAX_IMAGE:
        raise ValueError(
            f"{where}: got an image of shape {shape}, {size:,} numbers, expected at "
            f"most {_MAX_IMAGE:,} for dense layers; give the network conv_layer_params"
            ", which networks.observation_encoder chooses, or make the image smaller "
            "in an environment wrapper."
        )
