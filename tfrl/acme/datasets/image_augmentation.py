"""Random shifts of images, as transformations of sampled items."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import tensorflow as tf


class CropType(enum.Enum):
    """How `pad_and_crop` crops.

    Attributes:
      ALIGNED: At a random offset of whole pixels.
      BILINEAR: At a random offset, with bilinear interpolation.
    """

    ALIGNED = "aligned"
    BILINEAR = "bilinear"


def pad_and_crop(
    img: tf.Tensor, pad_size: int = 4, method: CropType = CropType.ALIGNED
) -> tf.Tensor:
    """Shifts all images of a batch by the same random offset, with mirrored borders.

    See Kostrikov et al., "Image augmentation is all you need" (2020), section 3.1. The
    numbers follow `tf.random.set_seed`.

    Args:
      img: Images `[..., height, width, channels]`; `[B, height, width, channels]` for
        `CropType.BILINEAR`.
      pad_size: The largest shift, in pixels.
      method: How to crop.

    Returns:
      The images, of the same shape; `CropType.BILINEAR` returns floats.

    Raises:
      ValueError: If the images do not have these dimensions.
    """
    rank = img.shape.rank
    if rank < 3 or (method is CropType.BILINEAR and rank != 4):
        raise ValueError(
            f"img: got the shape {img.shape}, expected images [..., height, width, "
            "channels], with one batch dimension for CropType.BILINEAR; reshape them."
        )
    padding = [pad_size, pad_size]
    paddings = [[0, 0]] * (rank - 3) + [padding, padding, [0, 0]]
    padded = tf.pad(img, paddings, mode="SYMMETRIC")
    if method is CropType.ALIGNED:
        cropped = tf.image.random_crop(padded, tf.shape(img))
        return tf.ensure_shape(cropped, img.shape)
    size = tf.shape(img)[1:3]
    padded_size = tf.shape(padded)[1:3]
    offset = tf.random.uniform([2], maxval=2 * pad_size + 1, dtype=tf.int32)
    corners = [offset / padded_size, (offset + size) / padded_size]
    batch_size = tf.shape(img)[0]
    box = tf.cast(tf.concat(corners, axis=0), tf.float32)
    boxes = tf.tile(box[tf.newaxis], [batch_size, 1])
    cropped = tf.image.crop_and_resize(padded, boxes, tf.range(batch_size), size)
    return tf.ensure_shape(cropped, img.shape)


def make_transform(
    observation_transform: Callable[[Any], Any], transform_next_observation: bool = True
) -> Callable[[Any], Any]:
    """Returns a function for the `postprocess` of `make_reverb_dataset`.

    Args:
      observation_transform: Changes the observations, such as `pad_and_crop`.
      transform_next_observation: Whether it changes the next observations, too.
    """
    names = ["observation"]
    if transform_next_observation:
        names.append("next_observation")

    def transform(sample: Any) -> Any:
        changed = {
            name: observation_transform(getattr(sample.data, name)) for name in names
        }
        return sample._replace(data=sample.data._replace(**changed))

    return transform
