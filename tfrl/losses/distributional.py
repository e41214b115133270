"""Computes losses of value distributions over fixed atoms.

Bellemare, Dabney and Munos, "A distributional perspective on reinforcement learning"
(2017, arXiv:1707.06887). A distribution is anything with the atoms `values` `[N]` and
their `logits` `[..., N]`, such as a `networks.distributions.DiscreteValuedDistribution`
or a `NamedTuple` of two tensors.
"""

from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf

from tfrl.losses.masking import masked
from tfrl.losses.shapes import check_same_shape


class DiscreteValued(Protocol):
    """A distribution over atoms.

    Attributes:
      values: The atoms, `[N]` or `[*V, N]`, in rising order along the last axis.
      logits: The unnormalized log-probabilities of the atoms, `[..., N]`.
    """

    @property
    def values(self) -> Any: ...  # noqa: D102

    @property
    def logits(self) -> Any: ...  # noqa: D102


def l2_project(z_p: Any, p: Any, z_q: Any) -> tf.Tensor:
    """Projects distributions onto other atoms, nearest in the L2 distance of the CDFs.

    The probability of an atom between two atoms of the new support is divided in
    inverse proportion to the distances, which keeps the mean. An atom beyond the new
    support counts as its first or last one. Bellemare, Dabney and Munos 2017, equation
    7; Rowland et al., "An analysis of categorical distributional reinforcement
    learning" (2018, arXiv:1802.08163), section 3.3.

    Args:
      z_p: The atoms, `[..., M]`, in any order.
      p: Their probabilities, `[..., M]`.
      z_q: The new atoms, `[N]`, or `[..., N]` whose leading dimensions broadcast with
        `z_p`'s. They rise strictly along the last axis; their distances may
        differ.

    Returns:
      The probabilities of the new atoms, `[..., N]`.
    """
    z_p, p, z_q = map(tf.convert_to_tensor, (z_p, p, z_q))
    z_p = tf.maximum(tf.minimum(z_p, z_q[..., -1:]), z_q[..., :1])
    steps = z_q[..., 1:] - z_q[..., :-1]
    # After the clipping, no atom is above the last one or below the first one.
    nothing = tf.zeros_like(z_q[..., :1])
    slope_above = tf.concat([1 / steps, nothing], axis=-1)
    slope_below = tf.concat([nothing, 1 / steps], axis=-1)
    distance = z_p[..., tf.newaxis, :] - z_q[..., tf.newaxis]  # [..., N, M]
    fall = tf.maximum(
        distance * slope_above[..., tf.newaxis],
        -distance * slope_below[..., tf.newaxis],
    )
    # XLA compiles a product to faster code than a sum over the last axis.
    return tf.linalg.matvec(tf.nn.relu(1 - fall), p)


def categorical_target(r_t: Any, d_t: Any, q_t: DiscreteValued) -> tf.Tensor:
    """Returns the probabilities of `r_t + d_t Z`, projected onto the atoms of `Z`.

    Bellemare, Dabney and Munos 2017, algorithm 1. No gradient flows through them.

    Args:
      r_t: Rewards, `[...]`.
      d_t: Discounts like `r_t`, 0 where the next state is terminal. Where the discount
        is 0, the logits do not count, even if they are not finite.
      q_t: The distribution of the values of the next states, with `logits` `[..., N]`.
        All leading dimensions broadcast.

    Returns:
      `[..., N]`.
    """
    r_t, d_t = tf.convert_to_tensor(r_t), tf.convert_to_tensor(d_t)
    values = tf.convert_to_tensor(q_t.values)
    d_t = d_t[..., tf.newaxis]
    z_t = r_t[..., tf.newaxis] + d_t * values
    # The atoms are all the same where the discount is 0.
    logits = masked(q_t.logits, tf.not_equal(d_t, 0))
    return tf.stop_gradient(l2_project(z_t, tf.nn.softmax(logits), values))


def categorical(
    q_tm1: DiscreteValued, r_t: Any, d_t: Any, q_t: DiscreteValued
) -> tf.Tensor:
    """Returns the cross entropy between the projected target and the prediction.

        -sum_i target_i log softmax(logits_tm1)_i

    Bellemare, Dabney and Munos 2017, algorithm 1.

    Args:
      q_tm1: The predicted distribution, with `logits` `[B, N]` or `[B, T, N]`.
      r_t: Rewards, `[B]` or `[B, T]`.
      d_t: Discounts like `r_t`, 0 where the next state is terminal.
      q_t: The distribution of the values of the next states (the target network's),
        with `logits` of the same shape and `values` `[N]`; no gradient flows into it.

    Returns:
      The losses, like `r_t`. Their least value is the entropy of the target, not 0.

    Raises:
      ValueError: The shapes differ.
    """
    r_t, d_t = tf.convert_to_tensor(r_t), tf.convert_to_tensor(d_t)
    logits_tm1, logits_t = map(tf.convert_to_tensor, (q_tm1.logits, q_t.logits))
    check_same_shape(logits_of_q_tm1=logits_tm1, logits_of_q_t=logits_t)
    check_same_shape(one_logit_of_q_tm1=logits_tm1[..., 0], r_t=r_t, d_t=d_t)
    return multiaxis_categorical(q_tm1, r_t, d_t, q_t)


def multiaxis_categorical(
    q_tm1: DiscreteValued, r_t: Any, d_t: Any, q_t: DiscreteValued
) -> tf.Tensor:
    """Returns the losses of `categorical` for several distributions of each example.

    Args:
      q_tm1: The predicted distributions, with `logits` `[B, *E, N]`.
      r_t: Rewards, `[B, *R]`.
      d_t: Discounts, `[B, *D]`.
      q_t: The distributions of the values of the next states, with `logits`
        `[B, *E, N]` and `values` `[*V, N]`; no gradient flows into them. `R`, `D` and
        `V` have as many dimensions as `E` (or none for `V`) and broadcast to it.

    Returns:
      The losses, `[B, *E]`.
    """
    target = categorical_target(r_t, d_t, q_t)
    return tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=q_tm1.logits)
