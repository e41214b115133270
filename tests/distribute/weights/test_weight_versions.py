"""Versions of frames, and policy lags against numbers worked by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.distribute.weights import weight_versions


def test_every_frame_of_a_rollout_has_the_version():
    frames = {"a": tf.zeros([5, 2, 3]), "b": tf.zeros([5, 2])}
    stamped = weight_versions.stamp(frames, 2**40)
    assert stamped.frames is frames
    np.testing.assert_array_equal(stamped.version, np.full([5, 2], 2**40))
    assert stamped.version.dtype == np.int64
    assert weight_versions.stamped_spec({"a": 1}) == (
        {"a": 1},
        tf.TensorSpec([], tf.int64),
    )


def test_percentiles_are_the_least_lags_that_so_many_frames_do_not_exceed():
    lags = weight_versions.Lags()
    assert np.all(np.isnan(weight_versions.percentiles(lags.counts(), [50, 99])))

    @tf.function
    def train(versions, train_step):
        lags.count(versions, train_step)

    # Lags 0 to 3 in one update, and 10 and 20 in two of the next; the learner went back
    # before the frame of version 40.
    train(tf.constant([[7, 6], [5, 4]], tf.int64), tf.constant(7, tf.int64))
    before = lags.counts()
    train(
        tf.constant([[[20], [40]], [[31], [11]]], tf.int64),
        tf.constant([[[30]], [[31]]], tf.int64),
    )
    np.testing.assert_array_equal(
        weight_versions.percentiles(before, [0, 25, 26, 50, 75, 99, 100]),
        [0, 0, 1, 1, 2, 3, 3],
    )
    newer = lags.counts() - before
    np.testing.assert_array_equal(
        weight_versions.percentiles(newer, [50, 75, 99]), [0, 10, 20]
    )


@pytest.mark.parametrize("lag", [0, 1, 62, 67, 68, 1000, 123_456_789])
def test_lags_are_exact_up_to_67_and_then_to_less_than_2_percent(lag):
    lags = weight_versions.Lags()
    lags.count(tf.constant([5], tf.int64), tf.constant(lag + 5, tf.int64))
    [found] = weight_versions.percentiles(lags.counts(), [99])
    assert found == lag if lag <= 67 else lag * 0.984 < found <= lag


def test_a_version_that_no_learner_has_had_counts_as_the_longest_lag():
    lags = weight_versions.Lags()
    lags.count(tf.constant([-(2**62), 3], tf.int64), tf.constant(3, tf.int64))
    assert lags.counts().sum() == 2
    assert lags.counts()[[0, -1]].tolist() == [1, 1]
