"""Random shifts of images.

Kostrikov et al., "Image augmentation is all you need" (2020, arXiv:2004.13649), section
3.1.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.networks.layers import encoders
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


def shifted(
    observation: types.NestedTensor,
    observation_spec: types.NestedTensorSpec,
    size: int,
    seed: tf.Tensor,
) -> Any:
    """Shifts the images of each example, whose borders are repeated.

    All images of an example are shifted alike, so that one image still follows from the
    one before. Images smaller than `encoders.LARGE_SIDE` stay as they are: their pixels
    are cells of a grid.

    Args:
      observation: The nest of observations, `[B, T, ...]`.
      observation_spec: The nest of specs of one observation.
      size: The largest shift in each direction, in pixels.
      seed: The seed of the shifts.
    """
    flat = tf.nest.flatten(observation)
    batch_size = tf.shape(flat[0])[0]
    # From -size to size, for the rows and the columns.
    by = seeds.uniform(seed, [batch_size, 2], 0, 2 * size + 1, tf.int32) - size
    moved = [
        _shift(images, spec, by)
        for images, spec in zip(flat, tf.nest.flatten(observation_spec), strict=True)
    ]
    return tf.nest.pack_sequence_as(observation, moved)


def are_any(observation_spec: types.NestedTensorSpec) -> bool:
    """Whether `shifted` changes observations."""
    return any(map(_axes, tf.nest.flatten(observation_spec)))


def _axes(spec: tf.TensorSpec) -> tuple[int, ...]:
    """Returns the axes of a large image's height and width; () for anything else."""
    axes = encoders.image_axes(spec) or ()
    is_large = all(spec.shape[axis] >= encoders.LARGE_SIDE for axis in axes)
    return axes if is_large else ()


def _shift(images: tf.Tensor, spec: tf.TensorSpec, by: tf.Tensor) -> tf.Tensor:
    for i, axis in enumerate(_axes(spec)):
        length = spec.shape[axis]
        index = tf.clip_by_value(tf.range(length) + by[:, i : i + 1], 0, length - 1)
        images = tf.gather(images, index, axis=axis, batch_dims=1)
    return images
