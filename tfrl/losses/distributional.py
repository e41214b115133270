"""Computes losses of value distributions over fixed atoms.

Bellemare, Dabney and Munos, "A distributional perspective on reinforcement learning"
(2017, arXiv:1707.06887). A distribution is anything with the atoms `values` `[N]` and
their `logits` `[..., N]`, such as a `DiscreteValuedDistribution` or a `NamedTuple` of
two tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from tfrl.losses.masking import masked
from tfrl.losses.shapes import (
    broadcast_shape,
    check_broadcast,
    check_ranks,
    check_same_shape,
    shape_of,
)

if TYPE_CHECKING:
    from tfrl.typing import types


class DiscreteValued(Protocol):
    """A distribution over atoms.

    Attributes:
      values: The atoms, `[N]` or `[*V, N]`, in rising order along the last axis.
      logits: The unnormalized log-probabilities of the atoms, `[..., N]`.
    """

    @property
    def values(self) -> tf.Tensor: ...  # noqa: D102

    @property
    def logits(self) -> tf.Tensor: ...  # noqa: D102


def l2_project(
    z_p: types.TensorLike, p: types.TensorLike, z_q: types.TensorLike
) -> tf.Tensor:
    """Projects distributions onto other atoms, nearest in the L2 distance of the CDFs.

    The probability of an atom between two atoms of the new support is divided in
    inverse proportion to the distances, which keeps the mean. An atom beyond the new
    support counts as its first or last one. Bellemare, Dabney and Munos 2017, equation
    7; Rowland et al., "An analysis of categorical distributional reinforcement
    learning" (2018, arXiv:1802.08163), section 3.3.

    Args:
      z_p: The atoms, `[..., M]`, in any order, with as many dimensions as `p`. Leading
        dimensions of size 1 broadcast to `p`.
      p: Their probabilities, `[..., M]`.
      z_q: The new atoms, `[N]`, or `[..., N]` with leading dimensions that broadcast
        with the leading dimensions of `z_p`. The new atoms rise strictly along the last
        axis; their distances may differ.

    Returns:
      The probabilities of the new atoms, `[..., N]`.

    Raises:
      ValueError: The shapes do not fit.
    """
    z_p, p, z_q = map(tf.convert_to_tensor, (z_p, p, z_q))
    check_ranks((p.shape.rank,), z_p=z_p)
    check_ranks(tuple(range(1, p.shape.rank + 1)), z_q=z_q)
    check_same_shape(p=p.shape[-1:], z_p=z_p.shape[-1:])
    check_broadcast(p=p, z_p=z_p)
    broadcast_shape(one_atom_of_z_p=z_p.shape[:-1], one_atom_of_z_q=z_q.shape[:-1])
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


def categorical_target(
    r_t: types.TensorLike, d_t: types.TensorLike, q_t: DiscreteValued
) -> tf.Tensor:
    """Returns the probabilities of `r_t + d_t Z`, projected onto the atoms of `Z`.

    Bellemare, Dabney and Munos 2017, algorithm 1. No gradient flows through the
    probabilities.

    Args:
      r_t: Rewards, `[...]`.
      d_t: Discounts like `r_t`, 0 where the next state is terminal. Where the discount
        is 0, the logits do not count, even if they are not finite.
      q_t: The distribution of the values of the next states, with `logits` `[..., N]`.
        `r_t` and `d_t` have as many dimensions as the logits have leading dimensions;
        dimensions of size 1 broadcast to them.

    Returns:
      `[..., N]`.

    Raises:
      ValueError: A rank or the number of atoms does not fit.
    """
    return _target(r_t, d_t, q_t, tf.convert_to_tensor(q_t.values))


def _target(r_t: Any, d_t: Any, q_t: DiscreteValued, z_q: tf.Tensor) -> tf.Tensor:
    """Computes `categorical_target` for the atoms `z_q`."""
    r_t, d_t = tf.convert_to_tensor(r_t), tf.convert_to_tensor(d_t)
    logits = tf.convert_to_tensor(q_t.logits)
    values = tf.convert_to_tensor(q_t.values)
    check_same_shape(
        logits_of_one_q_t=logits.shape[-1:], atoms_of_q_t=values.shape[-1:]
    )
    check_ranks((logits.shape.rank - 1,), r_t=r_t, d_t=d_t)
    check_broadcast(one_logit_of_q_t=logits.shape[:-1], r_t=r_t, d_t=d_t)
    d_t = d_t[..., tf.newaxis]
    z_t = r_t[..., tf.newaxis] + d_t * values
    # Where the discount is 0, all atoms are equal.
    logits = masked(logits, tf.not_equal(d_t, 0))
    return tf.stop_gradient(l2_project(z_t, tf.nn.softmax(logits), z_q))


def clipped_cross_entropy(
    target: types.TensorLike, logits: types.TensorLike, least: float
) -> tf.Tensor:
    """Returns the cross entropy with clipped probabilities.

        -sum_i target_i log clip(softmax(logits)_i, least, 1 - least)

    No gradient flows through a probability that is clipped, so an atom that has become
    unlikely stays so until the others move it. CleanRL's C51 has a `least` of 1e-5.

    Args:
      target: Probabilities, `[..., N]`.
      logits: The prediction's logits, `[..., N]`.
      least: The least probability, in (0, 0.5).

    Returns:
      The losses, `[...]`.

    Raises:
      ValueError: The shapes differ.
    """
    target, logits = tf.convert_to_tensor(target), tf.convert_to_tensor(logits)
    check_same_shape(target=target, logits=logits)
    probabilities = tf.clip_by_value(tf.nn.softmax(logits), least, 1 - least)
    return -tf.reduce_sum(target * tf.math.log(probabilities), axis=-1)


def categorical(
    q_tm1: DiscreteValued,
    r_t: types.TensorLike,
    d_t: types.TensorLike,
    q_t: DiscreteValued,
) -> tf.Tensor:
    """Returns the cross entropy between the projected target and the prediction.

        -sum_i target_i log softmax(logits_tm1)_i

    Bellemare, Dabney and Munos 2017, algorithm 1. The target is projected onto the
    atoms of the prediction.

    Args:
      q_tm1: The predicted distribution, with `logits` `[B, N]` or `[B, T, N]`, and
        `values` `[N]`.
      r_t: Rewards, `[B]` or `[B, T]`.
      d_t: Discounts like `r_t`, 0 where the next state is terminal.
      q_t: The distribution of the values of the next states (the target network's),
        with `logits` and `values` of the same shapes; no gradient flows into it.

    Returns:
      The losses, like `r_t`. Their least value is the entropy of the target, not 0.

    Raises:
      ValueError: The shapes differ.
    """
    logits_tm1 = shape_of(q_tm1.logits)
    check_ranks((2, 3), logits_of_q_tm1=logits_tm1)
    check_ranks((1,), values_of_q_tm1=q_tm1.values)
    check_same_shape(one_logit_of_q_tm1=logits_tm1[:-1], r_t=r_t, d_t=d_t)
    return multiaxis_categorical(q_tm1, r_t, d_t, q_t)


def multiaxis_categorical(
    q_tm1: DiscreteValued,
    r_t: types.TensorLike,
    d_t: types.TensorLike,
    q_t: DiscreteValued,
) -> tf.Tensor:
    """Returns the losses of `categorical` for several distributions of each example.

    Args:
      q_tm1: The predicted distributions, with `logits` `[B, *E, N]`, and `values`
        `[*V, N]`.
      r_t: Rewards, `[B, *R]`.
      d_t: Discounts, `[B, *D]`.
      q_t: The distributions of the values of the next states, with `logits` and
        `values` of the same shapes; no gradient flows into them. `R`, `D` and `V` have
        as many dimensions as `E` (or none for `V`) and broadcast to it.

    Returns:
      The losses, `[B, *E]`.

    Raises:
      ValueError: The shapes do not fit.
    """
    logits, values = shape_of(q_tm1.logits), tf.convert_to_tensor(q_tm1.values)
    check_same_shape(logits_of_q_tm1=logits, logits_of_q_t=q_t.logits)
    check_same_shape(values_of_q_tm1=values, values_of_q_t=q_t.values)
    check_ranks((1, logits.rank - 1), values_of_q_tm1=values)
    check_same_shape(
        batch_of_q_tm1=logits[:1],
        batch_of_r_t=shape_of(r_t)[:1],
        batch_of_d_t=shape_of(d_t)[:1],
    )
    check_broadcast(logits_of_q_tm1=logits, values_of_q_tm1=values)
    target = _target(r_t, d_t, q_t, values)
    return tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=q_tm1.logits)
