"""Computes returns and advantages with `tfrl.losses`, and TF-Agents' arguments."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.losses import returns


def discounted_return(
    rewards: Any,
    discounts: Any,
    final_value: Any = None,
    time_major: bool = True,
    provide_all_returns: bool = True,
) -> tf.Tensor:
    """Returns `Q_t = r_t + d_t Q_(t+1)` with `Q_T = final_value`, without gradient.

    Args:
      rewards: `[T]`, `[T, B]`, or `[B, T]` if not `time_major`.
      discounts: Like `rewards`; the agent's gamma times the environment's discounts.
      final_value: `[B]` (for `[T]`: `[]` or `[1]`), the value after the last step; 0 if
        None.
      time_major: Whether time is the first dimension.
      provide_all_returns: Whether to compute the returns of all steps, or only the
        first step's return.

    Returns:
      The returns, like `rewards`; without the time dimension if not
      `provide_all_returns`.
    """
    rewards, discounts = _time_major(time_major, rewards, discounts)
    if final_value is not None:
        final_value = tf.reshape(final_value, tf.shape(rewards)[1:])
    if not provide_all_returns:
        return returns.discounted_return(rewards, discounts, final_value)
    return _restore(
        time_major, returns.discounted_returns(rewards, discounts, final_value)
    )


def generalized_advantage_estimation(
    values: Any,
    final_value: Any,
    discounts: Any,
    rewards: Any,
    td_lambda: Any = 1.0,
    time_major: bool = True,
) -> tf.Tensor:
    """Returns the advantages of Schulman et al., 2016, without gradient.

    The value after each step is assumed to be the value of the next step. If episodes
    are truncated inside the sequence, use
    `tfrl.losses.generalized_advantage_estimation`.

    Args:
      values: Values of the states before the steps, `[T, B]`, or `[B, T]` if not
        `time_major`.
      final_value: `[B]`, the value after the last step.
      discounts: Like `values`.
      rewards: Like `values`.
      td_lambda: The lambda of the estimator, in [0, 1].
      time_major: Whether time is the first dimension.

    Returns:
      Advantages, like `values`.
    """
    values, discounts, rewards = _time_major(time_major, values, discounts, rewards)
    next_values = tf.concat([values[1:], tf.expand_dims(final_value, 0)], axis=0)
    advantages = returns.generalized_advantage_estimation(
        values, rewards, discounts, next_values, td_lambda
    )
    return _restore(time_major, advantages)


def _time_major(time_major: bool, *tensors: Any) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(t) if time_major else tf.transpose(t) for t in tensors]


def _restore(time_major: bool, tensor: tf.Tensor) -> tf.Tensor:
    return tensor if time_major else tf.transpose(tensor)
