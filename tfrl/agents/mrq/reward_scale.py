"""The mean size of rewards, by which MR.Q divides its values."""

from __future__ import annotations

import tensorflow as tf

from tfrl.compilation import replicas
from tfrl.trajectories import episodes, trajectory
from tfrl.utils import tensor_normalizer


class RewardScale(tf.Module):
    """The mean absolute reward of all frames, kept for a period of updates.

    It also says whether an episode has ever ended by a termination.

    Attributes:
      ends: 1 if there was a termination, else 0.
    """

    def __init__(self) -> None:
        """Begins without rewards."""
        super().__init__(name="reward_scale")
        self._sizes = tensor_normalizer.RunningMoments([], tf.float32)
        # The means of the current period and of the one before; 0 without rewards.
        self._now, self._before = (
            tf.Variable(0.0, trainable=False, name=name) for name in ("now", "before")
        )
        self.ends = tf.Variable(0.0, trainable=False, name="ends")

    @property
    def now(self) -> tf.Tensor:
        """The mean of the current period; 1 before any reward that is not 0."""
        mean = self._now.read_value()
        return tf.where(mean > 0, mean, 1.0)

    @property
    def before(self) -> tf.Tensor:
        """The mean of the period before, which is the unit of the target critics.

        It is 0 if that period had no reward that is not 0: its critics have learned no
        returns, and the random values of new critics would fade from the targets only
        by gamma^n a period. Without any frames it is 1, as `now` is.
        """
        return tf.where(self._sizes.count > 0, self._before.read_value(), 1.0)

    def update(self, frames: trajectory.Trajectory) -> None:
        """Adds frames `[B, ...]` or `[B, T, ...]`; see `TFAgent.update_normalizers`."""
        frames = replicas.gathered(
            frames._replace(observation=(), action=(), policy_info=())
        )
        counts = ~episodes.is_padding(frames) & ~frames.is_boundary()
        self._sizes.update(tf.abs(tf.cast(frames.reward, tf.float32)), counts)
        ended = tf.cast(counts & (frames.discount == 0), tf.float32)
        self.ends.assign(tf.maximum(self.ends, tf.reduce_max(ended)))

    def advance(self) -> None:
        """Begins the next period with the mean of all frames so far."""
        self._before.assign(self._now.read_value())
        self._now.assign(self._sizes.avg.read_value())
