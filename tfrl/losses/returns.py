"""Computes returns and advantages of sequences, time-major `[T]` or `[T, B]`.

All of them are targets: no gradient flows through them. In step `t` (0-based) the agent
leaves the state whose value is `v_tm1[t]`, receives `r_t[t]` and `discount_t[t]`, and
reaches the state whose value is `v_t[t]`. Within an episode `v_t[t] == v_tm1[t + 1]`.
At the end of an episode, or where the sequence is cut, the two differ: `v_t[t]` is the
value of the last observation, and `v_tm1[t + 1]` is the value of the next episode's
first observation. `continues_t` is 0 there. So a truncation bootstraps the value of its
own last observation, and no reward of another episode is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses import sequences
from tfrl.losses.shapes import check_same_shape, check_scalar_or_same_shape

if TYPE_CHECKING:
    from tfrl.typing import types


def discounted_returns(
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_final: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns each step's return, `G_t = r_t + discount_t G_(t+1)`, `G_T = v_final`.

    Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, equation 3.9. A
    discount of 0 ends an episode within the sequence.

    Args:
      r_t: Rewards, `[T]` or `[T, B]`.
      discount_t: Discounts, like `r_t`.
      v_final: Value of the state after the last step, `[]` or `[B]`; 0 if None.

    Returns:
      Returns, like `r_t`.

    Raises:
      ValueError: The shapes differ.
    """
    r_t, discount_t = sequences.as_sequences(r_t=r_t, discount_t=discount_t)
    if v_final is not None:
        r_t = _add_to_last(r_t, discount_t[-1] * _as_final(v_final, r_t))
    return tf.stop_gradient(sequences.solve_backwards(r_t, discount_t))


def discounted_return(
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_final: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns the first step's return, `[]` or `[B]`; see `discounted_returns`."""
    r_t, discount_t = sequences.as_sequences(r_t=r_t, discount_t=discount_t)
    worth = tf.math.cumprod(discount_t, axis=0, exclusive=True)
    total = tf.reduce_sum(worth * r_t, axis=0)
    if v_final is not None:
        total += tf.reduce_prod(discount_t, axis=0) * _as_final(v_final, r_t)
    return tf.stop_gradient(total)


def n_step_returns(
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
    n: int,
    continues_t: types.TensorLike | None = None,
    lambda_: types.TensorLike = 1.0,
) -> tf.Tensor:
    """Returns each step's return over `n` steps plus the value of the state reached.

        G_t = r_t + discount_t r_(t+1) + ... + (product of k discounts) v_(t+k-1)

    Sutton and Barto 2018, equation 7.1. `k` is `n`, or fewer where the sequence ends or
    `continues_t` is 0. With `lambda_` it is the lambda return that looks `k` steps
    ahead, equation 12.9: a mixture of the returns over 1 to `k` steps.

    Args:
      r_t: Rewards, `[T]` or `[T, B]`.
      discount_t: Discounts, like `r_t`.
      v_t: Values of the states reached, like `r_t`.
      n: A positive number.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `r_t`; all 1 if None.
      lambda_: A number in [0, 1], or numbers like `r_t`.

    Returns:
      Returns, like `r_t`.

    Raises:
      ValueError: `n` is not positive, or the shapes differ.
    """
    if n < 1:
        raise ValueError(
            f"n: got {n}, expected a positive number of steps; use n=1 for TD(0)."
        )
    r_t, discount_t, v_t = sequences.as_sequences(
        r_t=r_t, discount_t=discount_t, v_t=v_t
    )
    check_scalar_or_same_shape(r_t=r_t, lambda_=lambda_)
    mix = tf.cast(lambda_, r_t.dtype) * sequences.as_continues(continues_t, r_t)
    # After k rounds: the k-step return of each step. Nothing follows the last one.
    one_step = r_t + discount_t * v_t
    result = one_step
    for _ in range(n - 1):
        following = tf.concat([result[1:], v_t[-1:]], axis=0)
        onward = mix * following + (1 - mix) * v_t
        result = r_t + discount_t * onward
    return tf.stop_gradient(result)


def lambda_returns(
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    continues_t: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns each step's lambda return, a mixture of its n-step returns.

        G_t = r_t + discount_t (l_t G_(t+1) + (1 - l_t) v_t)

    Sutton and Barto 2018, equation 12.18, with `l_t = lambda_ continues_t`, which is 0
    in the last step. If the values are maxima over actions, these are the returns of
    Peng's Q(lambda) (Peng and Williams, "Incremental multi-step Q-learning", 1996).

    Args:
      r_t: Rewards, `[T]` or `[T, B]`.
      discount_t: Discounts, like `r_t`.
      v_t: Values of the states reached, like `r_t`; at a truncation, the value of the
        last observation. Where the discount is 0, they do not count, even if they are
        not finite.
      lambda_: A number in [0, 1], or numbers like `r_t`.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `r_t`; all 1 if None.

    Returns:
      Returns, like `r_t`.

    Raises:
      ValueError: The shapes differ.
    """
    r_t, discount_t, v_t = sequences.as_sequences(
        r_t=r_t, discount_t=discount_t, v_t=v_t
    )
    check_scalar_or_same_shape(r_t=r_t, lambda_=lambda_)
    mix = tf.cast(lambda_, r_t.dtype) * sequences.as_continues(continues_t, r_t)
    mix = tf.concat([mix[:-1], tf.zeros_like(mix[-1:])], axis=0)
    one_step = r_t + tf.math.multiply_no_nan(v_t, discount_t * (1 - mix))
    return tf.stop_gradient(sequences.solve_backwards(one_step, discount_t * mix))


def generalized_advantage_estimation(
    v_tm1: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    continues_t: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns GAE's advantages, discounted sums of TD errors.

        A_t = delta_t + discount_t l_t A_(t+1),    A_T = 0
        delta_t = r_t + discount_t v_t - v_tm1

    Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
    Estimation", 2016, equation 16, with `l_t = lambda_ continues_t`.

    Args:
      v_tm1: Values of the states before each step, `[T]` or `[T, B]`.
      r_t: Rewards, like `v_tm1`.
      discount_t: Discounts, like `v_tm1`.
      v_t: Values of the states after each step, like `v_tm1`; at a truncation, the
        value of the last observation.
      lambda_: A number in [0, 1], or numbers like `v_tm1`.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `v_tm1`; all 1 if None.

    Returns:
      Advantages, like `v_tm1`. `A + v_tm1` are the lambda returns.

    Raises:
      ValueError: The shapes differ.
    """
    v_tm1, r_t, discount_t, v_t = sequences.as_sequences(
        v_tm1=v_tm1, r_t=r_t, discount_t=discount_t, v_t=v_t
    )
    check_scalar_or_same_shape(r_t=r_t, lambda_=lambda_)
    mix = tf.cast(lambda_, r_t.dtype) * sequences.as_continues(continues_t, r_t)
    delta_t = r_t + discount_t * v_t - v_tm1
    return tf.stop_gradient(sequences.solve_backwards(delta_t, discount_t * mix))


def _add_to_last(x: tf.Tensor, addend: tf.Tensor) -> tf.Tensor:
    return tf.concat([x[:-1], (x[-1] + addend)[tf.newaxis]], axis=0)


def _as_final(v_final: Any, r_t: tf.Tensor) -> tf.Tensor:
    v_final = tf.convert_to_tensor(v_final, dtype=r_t.dtype)
    check_same_shape(one_step_of_r_t=r_t.shape[1:], v_final=v_final)
    return v_final
