"""Computes the returns and advantages of sequences of frames."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.trajectories import episodes, trajectory
from tfrl.trajectories import time_step as ts


class AdvantageEstimator(NamedTuple):
    """Computes returns and advantages from rewards and values.

    Attributes:
      discount_factor: The discount of each step; the environment's discount is a
        further factor.
      lambda_: The lambda of generalized advantage estimation.
      use_gae: Whether to use generalized advantage estimation. If not, an advantage is
        the discounted return minus the value, which is the limit for a lambda of 1.
      use_td_lambda_return: Whether to compute the returns of TD(lambda) instead of
        discounted returns. It has an effect with `use_gae` only.
    """

    discount_factor: Any = 0.99
    lambda_: Any = 0.95
    use_gae: bool = True
    use_td_lambda_return: bool = True

    def estimate(
        self,
        reward: tf.Tensor,
        discount: tf.Tensor,
        values: tf.Tensor,
        continues: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the returns and advantages of `T` steps, each `[B, T]`.

        A step bootstraps the value of its next observation, times the discount of the
        step. So a truncation and the end of the sequence are bootstrapped, and a
        termination is not.

        Args:
          reward: `[B, T]`.
          discount: The environment's discounts, `[B, T]`.
          values: The values of the `T + 1` observations, `[B, T + 1]`.
          continues: Whether step `t + 1` continues the episode of step `t`, bool
            `[B, T]`.
        """
        values = tf.transpose(values)

        def advantages_of(lambda_: Any) -> tf.Tensor:
            return losses.generalized_advantage_estimation(
                v_tm1=values[:-1],
                r_t=tf.transpose(tf.cast(reward, values.dtype)),
                discount_t=self.discount_factor * tf.transpose(discount),
                v_t=values[1:],
                lambda_=lambda_,
                continues_t=tf.transpose(continues),
            )

        advantages = advantages_of(self.lambda_ if self.use_gae else 1.0)
        over_value = advantages
        if self.use_gae and not self.use_td_lambda_return:
            over_value = advantages_of(1.0)
        returns = tf.stop_gradient(values[:-1]) + over_value
        return tf.transpose(returns), tf.transpose(advantages)


def marked(frames: trajectory.Trajectory) -> trajectory.Trajectory:
    """Sets the step types of frames at cuts, so that losses mask unusable frames.

    No frame holds the next observation of the last frame before a cut. So the
    `next_step_type` of this frame becomes LAST. Unless the frame is a termination,
    where the next observation does not count, it also becomes a boundary, which losses
    mask. The frame before such a boundary then ends the episode like a truncation, so
    that its advantage bootstraps the last known value. The frame after a cut becomes
    FIRST, so that recurrent networks reset their state.

    Args:
      frames: Collected frames `[B, T, ...]`; the last one only gives the last
        observation.

    Raises:
      ValueError: There is only one frame.
    """
    if frames.discount.shape[1] == 1:
        raise ValueError(
            "experience: expected at least 2 frames [B, T + 1, ...], because the last "
            "frame only gives the last observation, got 1; collect more of them."
        )
    cut = episodes.is_cut(frames)
    starts = tf.pad(cut[:, :-1], [[0, 0], [1, 0]])
    step_type = tf.where(starts, ts.StepType.FIRST, frames.step_type)
    unusable = cut & (frames.discount > 0)
    ends = cut | tf.pad(unusable[:, 1:], [[0, 0], [0, 1]])
    return frames._replace(
        step_type=tf.where(unusable, ts.StepType.LAST, step_type),
        next_step_type=tf.where(ends, ts.StepType.LAST, frames.next_step_type),
    )
