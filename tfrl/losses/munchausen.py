"""Munchausen reinforcement learning: rewards and values of a soft policy.

The policy is pi(.|s) = softmax(Q(s, .) / temperature), where Q comes from the target
network. Vieillard, Pietquin and Geist, "Munchausen reinforcement learning" (2020,
arXiv:2007.14430).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_ranks, check_same_shape, check_scalars
from tfrl.losses.td import action_value

if TYPE_CHECKING:
    from tfrl.typing import types


def munchausen_bonus(
    q_tm1: types.TensorLike,
    a_tm1: types.TensorLike,
    alpha: float,
    temperature: float,
    lowest: float,
) -> tf.Tensor:
    """Returns the bonus to add to the rewards, without gradient.

        alpha * clip(temperature * log pi(a_tm1|s_tm1), lowest, 0)

    Vieillard et al. 2020, equation 1 with the clipping of section 4.

    Args:
      q_tm1: The target network's values of the states, `[..., n]`; the lowest number of
        the dtype for actions that are not possible.
      a_tm1: The actions taken, integers `[...]`.
      alpha: The scale of the log-probability.
      temperature: The temperature of the policy.
      lowest: The lowest number that is scaled by `alpha`, negative.

    Returns:
      The bonus, `[...]`, in `[alpha * lowest, 0]`.

    Raises:
      ValueError: The shapes do not fit.
    """
    q_tm1, a_tm1 = tf.convert_to_tensor(q_tm1), tf.convert_to_tensor(a_tm1)
    check_same_shape(one_action_of_q_tm1=q_tm1.shape[:-1], a_tm1=a_tm1)
    check_scalars(alpha=alpha, temperature=temperature, lowest=lowest)
    taken = action_value(_log_policy(q_tm1, temperature), a_tm1)
    return alpha * tf.clip_by_value(tf.stop_gradient(temperature * taken), lowest, 0.0)


def munchausen_value(
    q_t: types.TensorLike, judge: types.TensorLike, temperature: float
) -> tf.Tensor:
    """Returns the soft value of states, without gradient.

        sum over a of pi(a|s) (Q(s, a) - temperature * log pi(a|s))

    Vieillard et al. 2020, equation 1, or equation 4 for quantiles.

    Args:
      q_t: The values `[..., n]`, or quantiles of the returns of the actions
        `[..., n, m]`.
      judge: The values `[..., n]` that define the policy, like `q_tm1` of
        `munchausen_bonus`.
      temperature: The temperature of the policy.

    Returns:
      `[...]`, or `[..., m]` for quantiles.

    Raises:
      ValueError: The shapes do not fit.
    """
    q_t, judge = tf.convert_to_tensor(q_t), tf.convert_to_tensor(judge)
    rank = judge.shape.rank
    check_ranks((rank, rank + 1), q_t=q_t)
    check_same_shape(outer_dimensions_of_q_t=q_t.shape[:rank], judge=judge)
    check_scalars(temperature=temperature)
    log_pi = _log_policy(judge, temperature)
    pi, entropy_bonus = tf.exp(log_pi), -temperature * log_pi
    if q_t.shape.rank > log_pi.shape.rank:
        pi, entropy_bonus = pi[..., tf.newaxis], entropy_bonus[..., tf.newaxis]
    axis = log_pi.shape.rank - 1
    # Actions that are not possible have the probability 0 and an infinite bonus.
    terms = tf.math.multiply_no_nan(q_t + entropy_bonus, pi * tf.ones_like(q_t))
    return tf.stop_gradient(tf.reduce_sum(terms, axis=axis))


def _log_policy(q_values: tf.Tensor, temperature: float) -> tf.Tensor:
    # The best value is subtracted first, so that dividing the lowest number gives no
    # NaN.
    best = tf.reduce_max(q_values, axis=-1, keepdims=True)
    return tf.nn.log_softmax((q_values - best) / temperature)
