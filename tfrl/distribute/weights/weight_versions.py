"""Frames with the version of the weights that chose their actions.

A version is the learner's train step, the number of its updates, when it pushed the
weights. Every frame in the tables of a run has a version. So the learner knows the age
of the policy that collected its training data:

>>> import numpy as np
>>> import tensorflow as tf
>>> from tfrl.distribute.weights import weight_versions
>>> stamped = weight_versions.stamp(np.zeros([5, 2, 3]), version=7)
>>> stamped.version.shape, int(stamped.version[0, 0])
((5, 2), 7)
>>> lags = weight_versions.Lags()
>>> lags.count(tf.constant([[7, 7, 9]], tf.int64), train_step=tf.constant(10, tf.int64))
>>> weight_versions.percentiles(lags.counts(), [50, 100]).tolist()
[3.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

# Lags l with the same int(_RESOLUTION * log(1 + l)) share a bucket. Lags up to 67 are
# exact, and larger ones are exact to 1.6 %.
_RESOLUTION = 64.0
_NUM_COUNTS = 2048  # Enough for lags of 10**13; longer lags count as 10**13.


class Stamped(NamedTuple):
    """Frames and the versions of the weights that chose their actions.

    Attributes:
      frames: A nest of frames, such as a `Trajectory` of tensors `[N, B, ...]`.
      version: int64 `[N, B]`, the train step of each frame's weights.
    """

    frames: Any
    version: Any


def stamped_spec(frame_spec: Any) -> Stamped:
    """Returns the spec of a stamped frame, without batch and time."""
    return Stamped(frame_spec, tf.TensorSpec([], tf.int64))


def stamp(frames: Any, version: int) -> Stamped:
    """Stamps frames `[N, B, ...]`, all with the same version."""
    outer = tree.flatten(frames)[0].shape[:2]
    return Stamped(frames, np.full(outer, version, np.int64))


class Lags(tf.Module):
    """Counts frames by their policy lag: the updates since their weights' version."""

    def __init__(self) -> None:
        """Starts with no frames."""
        super().__init__()
        with tf.device("CPU:0"):
            zeros = tf.zeros([_NUM_COUNTS], tf.int64)
            self._counts = tf.Variable(zeros, trainable=False)

    def count(self, version: tf.Tensor, train_step: tf.Tensor) -> None:
        """Counts frames, in a graph or eagerly.

        Args:
          version: int64 `[...]`, the frames' versions. A version after the train step
            counts as lag 0: the learner has gone back to a checkpoint.
          train_step: int64, the train step at which the frames are trained on; any
            shape that broadcasts with `version`.
        """
        with tf.device("CPU:0"):
            lag = tf.maximum(train_step - version, 0)
            bucket = _RESOLUTION * tf.math.log1p(tf.cast(lag, tf.float64))
            bucket = tf.minimum(bucket, _NUM_COUNTS - 1)
            index = tf.reshape(tf.cast(bucket, tf.int32), [-1])
            ones = tf.ones_like(index, tf.int64)
            self._counts.scatter_add(tf.IndexedSlices(ones, index))

    def counts(self) -> np.ndarray:
        """Returns the counts so far, int64; see `percentiles`."""
        return self._counts.numpy()


def percentiles(counts: np.ndarray, percents: Sequence[float]) -> np.ndarray:
    """Returns percentiles: the smallest lags that a given percentage does not exceed.

    Args:
      counts: The result of `Lags.counts`, or the difference of two such results.
      percents: Between 0 and 100, `[n]`.

    Returns:
      The lags `[n]`, float64; NaN without frames. Lags above 67 may be 1.6 % too low.
    """
    sums = np.cumsum(counts)
    if not sums[-1]:
        return np.full(len(percents), np.nan)
    wanted = np.maximum(np.ceil(np.asarray(percents) / 100 * sums[-1]), 1)
    # The least integer of each bucket.
    return np.ceil(np.expm1(np.searchsorted(sums, wanted) / _RESOLUTION))
