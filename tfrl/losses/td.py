"""Computes one-step temporal differences.

A TD error is `target - prediction`, elementwise. A loss is a function of the error,
such as `huber_loss`. Gradients only flow into the prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.masking import masked
from tfrl.losses.shapes import (
    check_ranks,
    check_same_shape,
    check_scalars,
    shape_of,
)

if TYPE_CHECKING:
    from tfrl.typing import types


def td_target(
    r_t: types.TensorLike, discount_t: types.TensorLike, v_t: types.TensorLike
) -> tf.Tensor:
    """Returns `r_t + discount_t v_t`, without gradient.

    Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, equation 6.2.

    Args:
      r_t: Rewards, `[B]` or `[T, B]`, or `[T, B, N]` for N samples of each value.
      discount_t: Discounts like `r_t`, 0 where the next state is terminal. Where the
        discount is 0, `v_t` does not count, even if it is not finite.
      v_t: Values of the next states, like `r_t`.

    Raises:
      ValueError: The shapes differ, or their rank is not 1, 2 or 3.
    """
    r_t, discount_t, v_t = map(tf.convert_to_tensor, (r_t, discount_t, v_t))
    check_ranks((1, 2, 3), r_t=r_t, discount_t=discount_t, v_t=v_t)
    check_same_shape(r_t=r_t, discount_t=discount_t, v_t=v_t)
    return tf.stop_gradient(r_t + tf.math.multiply_no_nan(v_t, discount_t))


def td_error(
    v_tm1: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
) -> tf.Tensor:
    """Returns `r_t + discount_t v_t - v_tm1`, the error of TD(0).

    Sutton and Barto 2018, equation 6.5.

    Args:
      v_tm1: Predicted values, `[B]` or `[T, B]`.
      r_t: Rewards, like `v_tm1`.
      discount_t: Discounts, like `v_tm1`.
      v_t: Values of the next states, like `v_tm1`; no gradient flows into them.

    Raises:
      ValueError: See `td_target`.
    """
    v_tm1, target = tf.convert_to_tensor(v_tm1), td_target(r_t, discount_t, v_t)
    check_same_shape(r_t=target, v_tm1=v_tm1)
    return target - v_tm1


def largest_error(errors: Sequence[types.TensorLike]) -> tf.Tensor:
    """Returns the error with the largest absolute value, element by element.

    The absolute values of the result for two critics are the priorities in Fujimoto,
    Meger and Precup, "An Equivalence between Loss Functions and Non-Uniform Sampling in
    Experience Replay", 2020.

    Args:
      errors: A sequence of tensors of the same shape.

    Raises:
      ValueError: The shapes differ.
    """
    largest, *others = map(tf.convert_to_tensor, errors)
    for error in others:
        check_same_shape(first_of_errors=largest, other_of_errors=error)
        largest = tf.where(tf.abs(error) > tf.abs(largest), error, largest)
    return largest


def sequence_priorities(td_errors: types.TensorLike, eta: float = 0.9) -> tf.Tensor:
    """Returns `eta max_t |delta_t| + (1 - eta) mean_t |delta_t|`, the priorities `[B]`.

    Kapturowski et al., "Recurrent experience replay in distributed reinforcement
    learning" (2019, R2D2), section 2.3.

    Args:
      td_errors: The TD errors of sequences, `[B, T]`, or of single transitions, `[B]`.
      eta: The weight of the largest error, in [0, 1].

    Raises:
      ValueError: The rank of the errors is not 1 or 2, or `eta` is not a scalar.
    """
    sizes = tf.abs(td_errors)
    check_ranks((1, 2), td_errors=sizes)
    check_scalars(eta=eta)
    time = list(range(1, sizes.shape.rank))
    largest = tf.reduce_max(sizes, axis=time)
    return eta * largest + (1 - eta) * tf.reduce_mean(sizes, axis=time)


def lap_priorities(td_errors: types.TensorLike) -> tf.Tensor:
    """Returns `max(|delta|, 1)`, the priorities `[B]` of transitions.

    Fujimoto, Meger and Precup, "An equivalence between loss functions and non-uniform
    sampling in experience replay" (2020, arXiv:2007.06049), algorithm 1, LAP: the loss
    is Huber's, without importance weights, and the priorities have the exponent 0.4.

    Args:
      td_errors: The TD errors, `[B]`.

    Raises:
      ValueError: The rank of the errors is not 1.
    """
    sizes = tf.abs(td_errors)
    check_ranks((1,), td_errors=sizes)
    return tf.maximum(sizes, 1.0)


def action_value(q: types.TensorLike, a: types.TensorLike) -> tf.Tensor:
    """Returns `q(a)`, the values of the given actions.

    Args:
      q: Action values, `[..., A]`, such as `[B, A]` or `[T, B, A]`; or `N` numbers for
        each action, `[..., A, N]`, such as the quantiles of its return.
      a: The actions, 0-based integers `[...]`.

    Returns:
      The values, in the shape of `a`, or `[..., N]`.

    Raises:
      ValueError: `q` does not have one or two dimensions more than `a`, or the shape of
        `q` does not begin with the shape of `a`.
    """
    q, a = tf.convert_to_tensor(q), tf.convert_to_tensor(a)
    if a.dtype not in (tf.int32, tf.int64):
        # TensorFlow refuses other types of indices, here or in the gradient.
        a = tf.cast(a, tf.int32)
    rank = a.shape.rank
    check_ranks((rank + 1, rank + 2), q=q)
    check_same_shape(outer_dimensions_of_q=q.shape[:rank], a=a)
    # There are few actions, so a product takes a third of the operations of a batched
    # gather and its gradient.
    chosen = tf.one_hot(a, q.shape[rank], dtype=q.dtype)
    for _ in range(q.shape.rank - rank - 1):
        chosen = chosen[..., tf.newaxis]
    return tf.reduce_sum(masked(q, chosen), axis=rank)


def best_action_value(
    q_t: types.TensorLike, q_t_selector: types.TensorLike | None = None
) -> tf.Tensor:
    """Returns the value of the best action: `max_a q_t(a)`.

    With a selector, the result is `q_t(argmax_a q_t_selector(a))`, as in double
    Q-learning, or to exclude invalid actions.

    Args:
      q_t: Action values, `[B, A]` or `[T, B, A]`.
      q_t_selector: The action values that choose the action, like `q_t`; `q_t` itself
        if None.

    Raises:
      ValueError: The shapes differ, or their rank is not 2 or 3.
    """
    q_t = tf.convert_to_tensor(q_t)
    check_ranks((2, 3), q_t=q_t)
    if q_t_selector is None:
        return tf.reduce_max(q_t, axis=-1)
    check_same_shape(q_t=q_t, q_t_selector=tf.convert_to_tensor(q_t_selector))
    best = tf.argmax(q_t_selector, axis=-1, output_type=tf.int32)
    return action_value(q_t, best)


def double_q_learning(
    q_tm1: types.TensorLike,
    a_tm1: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    q_t_value: types.TensorLike,
    q_t_selector: types.TensorLike,
) -> tf.Tensor:
    """Returns `r_t + discount_t q_t_value(argmax_a q_t_selector(a)) - q_tm1(a_tm1)`.

    Van Hasselt, Guez and Silver, "Deep Reinforcement Learning with Double Q-learning",
    2016, equation 4.

    Args:
      q_tm1: Predicted action values, `[B, A]` or `[T, B, A]`.
      a_tm1: Actions taken, 0-based integers `[B]` or `[T, B]`.
      r_t: Rewards, like `a_tm1`.
      discount_t: Discounts, like `a_tm1`.
      q_t_value: Action values of the next states, from which the value is taken (the
        target network's), like `q_tm1`.
      q_t_selector: Action values of the next states, which choose the action (the
        online network's), like `q_tm1`.

    Raises:
      ValueError: The shapes do not fit.
    """
    check_same_shape(q_tm1=q_tm1, q_t_value=q_t_value)
    check_same_shape(one_action_of_q_tm1=shape_of(q_tm1)[:-1], a_tm1=a_tm1)
    v_t = best_action_value(q_t_value, q_t_selector)
    return td_error(action_value(q_tm1, a_tm1), r_t, discount_t, v_t)
