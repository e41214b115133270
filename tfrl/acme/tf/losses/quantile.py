"""Quantile regression with the Huber loss as it is, not divided by its parameter."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfrl.losses import elementwise, td
from tfrl.losses.shapes import check_ranks, check_same_shape


class QuantileDistribution(NamedTuple):
    """Quantiles with weights.

    Attributes:
      values: The quantiles, `[B, N]`.
      logits: The logarithms of their weights, up to a constant, `[B, N]`.
    """

    values: tf.Tensor
    logits: tf.Tensor


class NonUniformQuantileRegression:
    """The quantile regression loss for quantiles at any fractions.

        sum_i sum_j p_j |tau_i - 1(u_ij < 0)| huber(u_ij)

    with `u_ij = r_t + pcont_t q_t_j - q_tm1_i` and the weights `p = softmax(logits)` of
    `q_t`. It is `huber_param` times `losses.quantile`, which divides the Huber loss.
    """

    def __init__(self, huber_param: float, name: str = "NUQuantileRegression"):
        """Creates the loss.

        Args:
          huber_param: Where the Huber loss becomes linear.
          name: The name of the loss.

        Raises:
          ValueError: If `huber_param` is not above 0, where all losses would be 0.
        """
        if not huber_param > 0:
            raise ValueError(
                f"huber_param: got {huber_param}, expected a number above 0, since the "
                "loss is 0 at 0; 1 is usual."
            )
        self._huber_param = huber_param
        self.name = name

    def __call__(
        self,
        q_tm1: QuantileDistribution,
        r_t: tf.Tensor,
        pcont_t: tf.Tensor,
        q_t: QuantileDistribution,
        tau: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the losses, `[B]`.

        Args:
          q_tm1: The predicted quantiles, `[B, N]`; their logits are ignored.
          r_t: Rewards, `[B]` or `[B, 1]`.
          pcont_t: Discounts, `[B]` or `[B, 1]`.
          q_t: The quantiles of the values of the next states, and their logits, `[B,
            M]`; no gradient flows into them.
          tau: The probabilities of the predicted quantiles, `[B, N]`.

        Raises:
          ValueError: A tensor has another shape; nothing is broadcast.
        """
        predictions, next_values, logits, tau = map(
            tf.convert_to_tensor, (q_tm1.values, q_t.values, q_t.logits, tau)
        )
        _check_shapes(predictions, tau, next_values, logits)
        rewards, discounts = (
            _column(name, value, next_values) * tf.ones_like(next_values)
            for name, value in (("r_t", r_t), ("pcont_t", pcont_t))
        )
        targets = td.td_target(rewards, discounts, next_values)
        errors = targets[:, tf.newaxis, :] - predictions[:, :, tf.newaxis]
        is_below = tf.cast(errors < 0, tau.dtype)
        slopes = tf.stop_gradient(tf.abs(tau[:, :, tf.newaxis] - is_below))
        weights = tf.stop_gradient(tf.nn.softmax(logits))[:, tf.newaxis, :]
        losses = slopes * elementwise.huber_loss(errors, self._huber_param)
        return tf.reduce_sum(losses * weights, axis=[1, 2])


def _check_shapes(
    predictions: tf.Tensor, tau: tf.Tensor, next_values: tf.Tensor, logits: tf.Tensor
) -> None:
    check_ranks((2,), **{"q_tm1.values": predictions, "q_t.values": next_values})
    check_same_shape(**{"q_tm1.values": predictions, "tau": tau})
    check_same_shape(**{"q_t.values": next_values, "q_t.logits": logits})
    check_same_shape(
        **{
            "q_tm1.values[:, 0]": predictions.shape[:1],
            "q_t.values[:, 0]": next_values.shape[:1],
        }
    )


def _column(name: str, numbers: tf.Tensor, next_values: tf.Tensor) -> tf.Tensor:
    """Returns a number for each row of `next_values`, `[B, 1]`.

    Raises:
      ValueError: `numbers` is neither `[B]` nor `[B, 1]`.
    """
    numbers = tf.convert_to_tensor(numbers)
    shape = numbers.shape[:1] if numbers.shape[1:] == [1] else numbers.shape
    check_same_shape(**{"q_t.values[:, 0]": next_values.shape[:1], name: shape})
    # A size that is only known when a graph runs is compared by the reshape.
    return tf.reshape(numbers, [tf.shape(next_values)[0], 1])
