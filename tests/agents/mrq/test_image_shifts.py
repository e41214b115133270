"""Random shifts of images, against NumPy's padding."""

import itertools

import numpy as np
import tensorflow as tf

from tfrl.agents.mrq import image_shifts
from tfrl.specs import BoundedTensorSpec


def test_images_are_shifted_alike_in_all_frames_of_an_example():
    rng = np.random.default_rng(7)
    spec = {
        "frame": BoundedTensorSpec([40, 40, 1], tf.uint8, 0, 255),
        "grid": BoundedTensorSpec([10, 10, 1], tf.uint8, 0, 255),
    }
    images = rng.integers(0, 256, size=[6, 3, 40, 40, 1])
    grid = rng.integers(0, 256, size=[6, 3, 10, 10, 1])
    observation = {
        "frame": tf.constant(images, tf.uint8),
        "grid": tf.constant(grid, tf.uint8),
    }
    assert image_shifts.are_any(spec)
    assert not image_shifts.are_any({"grid": spec["grid"]})
    seed = tf.constant([1, 2], tf.int64)
    found = image_shifts.shifted(observation, spec, 4, seed)
    np.testing.assert_array_equal(found["grid"], grid)
    padded = np.pad(images, [(0, 0), (0, 0), (4, 4), (4, 4), (0, 0)], mode="edge")
    offsets = []
    for b in range(6):
        matching = [
            (y, x)
            for y, x in itertools.product(range(9), range(9))
            if np.array_equal(padded[b, :, y : y + 40, x : x + 40], found["frame"][b])
        ]
        assert len(matching) == 1
        offsets += matching
    assert len(set(offsets)) > 2
