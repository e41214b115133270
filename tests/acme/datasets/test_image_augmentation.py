"""Random shifts of images."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme import types
from tfrl.acme.datasets import image_augmentation

ALIGNED = image_augmentation.CropType.ALIGNED
BILINEAR = image_augmentation.CropType.BILINEAR
IMAGES = np.arange(2 * 5 * 6, dtype=np.float32).reshape(2, 5, 6, 1)


def shifts(pad):
    """All crops of the padded images."""
    paddings = [[0, 0], [pad, pad], [pad, pad], [0, 0]]
    padded = np.pad(IMAGES, paddings, mode="symmetric")
    return [
        padded[:, y : y + 5, x : x + 6]
        for y in range(2 * pad + 1)
        for x in range(2 * pad + 1)
    ]


def test_an_aligned_crop_is_one_of_the_shifts():
    tf.random.set_seed(0)
    expected = shifts(2)
    found = set()
    for _ in range(40):
        crop = image_augmentation.pad_and_crop(tf.constant(IMAGES), 2, ALIGNED).numpy()
        matches = [i for i, each in enumerate(expected) if np.array_equal(each, crop)]
        assert matches
        found.add(matches[0])
    assert len(found) > 5


def test_a_bilinear_crop_has_the_images_values():
    crop = image_augmentation.pad_and_crop(tf.constant(IMAGES), 2, BILINEAR)
    assert crop.shape == IMAGES.shape
    assert crop.dtype == tf.float32
    assert IMAGES[1].min() <= tf.reduce_min(crop[1]) <= tf.reduce_max(crop[1])
    assert tf.reduce_max(crop[1]) <= IMAGES[1].max()


@pytest.mark.parametrize("method", [ALIGNED, BILINEAR])
def test_without_padding_nothing_moves(method):
    crop = image_augmentation.pad_and_crop(tf.constant(IMAGES), 0, method)
    if method is ALIGNED:
        np.testing.assert_array_equal(crop, IMAGES)
    assert crop.shape == IMAGES.shape


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"img: got the shape \(5, 6\), .* reshape"):
        image_augmentation.pad_and_crop(tf.zeros([5, 6]))
    with pytest.raises(ValueError, match="one batch dimension"):
        image_augmentation.pad_and_crop(tf.zeros([5, 6, 1]), method=BILINEAR)


@pytest.mark.parametrize("next_too", [False, True])
def test_a_transform_changes_observations_alone(next_too):
    sample_type = collections.namedtuple("Sample", ["data"])
    transition = types.Transition(1.0, 2.0, 3.0, 4.0, 5.0)
    transform = image_augmentation.make_transform(lambda x: -x, next_too)
    data = transform(sample_type(transition)).data
    assert data == transition._replace(
        observation=-1.0, next_observation=-5.0 if next_too else 5.0
    )
