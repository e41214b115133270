"""Scales rewards by the running standard deviation of discounted returns."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl import losses
from tfrl.utils import number_checks
from tfrl.utils.tensor_normalizer import RunningMoments


class RewardNormalizer(tf.Module):
    """Divides rewards by the running standard deviation of discounted returns.

    The return of a step is the discounted sum of the episode so far, `R_t = r_t + gamma
    R_(t-1)`, as in `VecNormalize` of Stable-Baselines3 and `NormalizeReward` of
    Gymnasium. With `gamma=0` it is the reward itself, by whose standard deviation
    TF-Agents' PPO divides. The mean is not subtracted, because that would change which
    policy is the best. Until returns have differed, rewards are clipped and not scaled.
    """

    def __init__(
        self,
        batch_size: int | None = 1,
        gamma: Any = 0.99,
        clip_value: float = 10.0,
        variance_epsilon: float = 1e-8,
        name: str | None = None,
    ) -> None:
        """Creates a normalizer without statistics.

        Args:
          batch_size: The number of environments whose rewards arrive together; None for
            any number, which requires `gamma=0`, because then no earlier returns are
            needed.
          gamma: The discount factor of the returns.
          clip_value: The largest absolute value of normalized rewards; 0 does not clip.
          variance_epsilon: A number that is added to the variance of the returns.
          name: The module's name.

        Raises:
          ValueError: A number is out of range.
        """
        super().__init__(name=name)
        if batch_size is not None:
            number_checks.check_integer(
                "batch_size", batch_size, 1, remedy="give environment.batch_size"
            )
        elif gamma != 0:
            raise ValueError(
                f"batch_size: got None with gamma={gamma}, expected a number, since "
                "each environment has its own return so far; give "
                "environment.batch_size, or gamma=0."
            )
        number_checks.check_number(
            "gamma", gamma, 0.0, 1.0, remedy="0.99 is usual, and 0 takes the rewards"
        )
        number_checks.check_number(
            "clip_value", clip_value, 0.0, remedy="10 is usual, and 0 does not clip"
        )
        number_checks.check_number(
            "variance_epsilon", variance_epsilon, 0.0, remedy="1e-8 is usual"
        )
        self._batch_size = batch_size
        self._gamma = gamma
        self._clip_value = clip_value
        self._variance_epsilon = variance_epsilon
        self._moments = RunningMoments([], tf.float32)
        self._returns = None
        if batch_size is not None:
            self._returns = tf.Variable(
                tf.zeros([batch_size]), trainable=False, name="returns"
            )

    @property
    def batch_size(self) -> int | None:
        """The number of environments whose rewards arrive together; None for any."""
        return self._batch_size

    @property
    def returns(self) -> tf.Variable | None:
        """The environments' returns so far, float32 `[B]`; None for any number."""
        return self._returns

    def update(
        self, rewards: tf.Tensor, is_first: tf.Tensor, mask: tf.Tensor | None = None
    ) -> None:
        """Adds the returns of further steps to the statistics.

        Args:
          rewards: The rewards of the steps, `[B]`, or `[B, T]` in order of time.
          is_first: Whether each step is the first of its episode, bool `[B(, T)]`.
          mask: Whether each step counts, bool `[B(, T)]`; all count if None. The return
            so far skips steps that do not count.

        Raises:
          ValueError: `B` is not `batch_size`.
        """
        rewards = tf.cast(rewards, tf.float32)
        if self._returns is None:
            self._moments.update(rewards, mask)
            return
        if rewards.shape[0] not in (None, self._batch_size):
            raise ValueError(
                f"rewards: expected the rewards of {self._batch_size} environment(s), "
                f"as batch_size says, got shape {tuple(rewards.shape)}; make the "
                f"RewardNormalizer with batch_size={rewards.shape[0]}."
            )
        discounts = tf.where(is_first, 0.0, tf.cast(self._gamma, tf.float32))
        if mask is not None:
            rewards = tf.where(mask, rewards, 0.0)
            discounts = tf.where(mask, discounts, 1.0)
        returns = _returns_so_far(rewards, discounts, self._returns)
        self._returns.assign(returns if returns.shape.rank == 1 else returns[:, -1])
        self._moments.update(returns, mask)

    def scale(self) -> tf.Tensor:
        """Returns the factor of the rewards, a scalar."""
        variance = self._moments.variance()
        return tf.where(
            variance > 0, tf.math.rsqrt(variance + self._variance_epsilon), 1.0
        )

    def normalize(self, rewards: tf.Tensor) -> tf.Tensor:
        """Returns the scaled and clipped rewards, of the same shape and dtype."""
        normalized = self.scale() * tf.cast(rewards, tf.float32)
        if self._clip_value > 0:
            normalized = tf.clip_by_value(
                normalized, -self._clip_value, self._clip_value
            )
        return tf.cast(normalized, rewards.dtype)


def _returns_so_far(
    rewards: tf.Tensor, discounts: tf.Tensor, before: tf.Tensor
) -> tf.Tensor:
    """Returns `R_t = rewards_t + discounts_t R_(t-1)`, `[B]` or `[B, T]`.

    Args:
      rewards: `[B]` or `[B, T]`.
      discounts: Like `rewards`.
      before: The returns of the step before, `[B]`.
    """
    if rewards.shape.rank == 1:
        return rewards + discounts * before
    # The recurrence of returns, with time reversed.
    r_t, discount_t = (tf.reverse(tf.transpose(x), [0]) for x in (rewards, discounts))
    returns = losses.discounted_returns(r_t, discount_t, v_final=before)
    return tf.transpose(tf.reverse(returns, [0]))
