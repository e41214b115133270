"""Computes the errors of Retrace, which evaluates actions from another policy's steps.

Munos et al., "Safe and efficient off-policy reinforcement learning" (2016,
arXiv:1606.02647). Sequences are time-major and follow `losses.returns`: step `t` leaves
a state by the action whose value is predicted, receives `r_t[t]` and `discount_t[t]`,
and reaches the state of the next action. The policy `mu` has taken the actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses import sequences
from tfrl.losses.shapes import check_ranks, check_same_shape, check_scalar_or_same_shape
from tfrl.losses.td import action_value

if TYPE_CHECKING:
    from tfrl.typing import types


def retrace(
    q_tm1: types.TensorLike,
    q_t: types.TensorLike,
    a_tm1: types.TensorLike,
    a_t: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    pi_t: types.TensorLike,
    mu_t: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    continues_t: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns the errors `G_t - q_tm1(a_tm1)` of Retrace for discrete actions.

        G_t = r_t + discount_t (sum_a pi(a) q_t(a) + c_t (G_(t+1) - q_t(a_t)))
        c_t = lambda_ continues_t min(1, pi(a_t) / mu(a_t)),    0 in the last step

    Munos et al. 2016, equation 3, with the coefficients of section 3. With `lambda_` 0
    it is expected SARSA.

    Args:
      q_tm1: Predicted action values of the states before each step, `[T, A]` or `[T, B,
        A]`. Gradients flow into them alone.
      q_t: Action values of the states reached (the target network's), like `q_tm1`; at
        a truncation, the action values of the last observation.
      a_tm1: Actions taken, 0-based integers `[T]` or `[T, B]`.
      a_t: Actions taken in the states reached, like `a_tm1`. They do not count in the
        last step and where `continues_t` is 0, but must be in range there, too.
      r_t: Rewards, like `a_tm1`.
      discount_t: Discounts, like `a_tm1`, 0 where the next state is terminal. Where the
        discount is 0, `q_t` does not count, even if it is not finite.
      pi_t: The learned policy's probabilities in the states reached, like `q_tm1`.
      mu_t: The probabilities with which `a_t` was taken, like `a_tm1`.
      lambda_: A number in [0, 1], or numbers like `a_tm1`.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `a_tm1`; all 1 if None.

    Returns:
      The errors, like `a_tm1`.

    Raises:
      ValueError: The shapes do not fit.
    """
    q_tm1, q_t, a_t, pi_t = map(tf.convert_to_tensor, (q_tm1, q_t, a_t, pi_t))
    r_t, discount_t, mu_t = sequences.as_sequences(
        r_t=r_t, discount_t=discount_t, mu_t=mu_t
    )
    check_ranks((r_t.shape.rank + 1,), q_tm1=q_tm1)
    check_same_shape(q_tm1=q_tm1, q_t=q_t, pi_t=pi_t)
    check_same_shape(
        r_t=r_t, one_action_of_q_tm1=q_tm1.shape[:-1], a_tm1=a_tm1, a_t=a_t
    )
    pi_of_a_t = action_value(pi_t, a_t)
    # min(1, pi / mu), and 0 instead of NaN where both are 0.
    ratio = tf.math.divide_no_nan(pi_of_a_t, tf.maximum(pi_of_a_t, mu_t))
    v_t = tf.reduce_sum(tf.math.multiply_no_nan(q_t, pi_t), axis=-1)
    targets = _targets(
        action_value(q_t, a_t), v_t, r_t, discount_t, ratio, lambda_, continues_t
    )
    return targets - action_value(q_tm1, a_tm1)


def retrace_continuous(
    q_tm1: types.TensorLike,
    q_t: types.TensorLike,
    v_t: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    log_rhos: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    continues_t: types.TensorLike | None = None,
) -> tf.Tensor:
    """Returns the errors `G_t - q_tm1` of Retrace for actions of any kind.

        G_t = r_t + discount_t (v_t + c_t (G_(t+1) - q_t))
        c_t = lambda_ continues_t min(1, exp(log_rhos)),    0 in the last step

    Munos et al. 2016, equation 3, with the coefficients of section 3.

    Args:
      q_tm1: Predicted values of the actions taken, `[T]` or `[T, B]`. Gradients flow
        into them alone.
      q_t: Values of the actions taken in the states reached, like `q_tm1`. They and
        `log_rhos` do not count in the last step and where `continues_t` is 0, even if
        they are not finite; rlax leaves out the last step.
      v_t: Values of the states reached under the learned policy, such as the mean value
        of some of its actions, like `q_tm1`; at a truncation, the value of the last
        observation.
      r_t: Rewards, like `q_tm1`.
      discount_t: Discounts, like `q_tm1`, 0 where the next state is terminal. Where the
        discount is 0, `v_t` does not count, even if it is not finite.
      log_rhos: `log pi(a) - log mu(a)` of the actions taken in the states reached, for
        the policy `pi` that learns and the policy `mu` that acted, like `q_tm1`.
      lambda_: A number in [0, 1], or numbers like `q_tm1`.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `q_tm1`; all 1 if None.

    Returns:
      The errors, like `q_tm1`.

    Raises:
      ValueError: A tensor has another rank, or the shapes differ.
    """
    q_tm1, q_t, v_t, r_t, discount_t, log_rhos = sequences.as_sequences(
        q_tm1=q_tm1, q_t=q_t, v_t=v_t, r_t=r_t, discount_t=discount_t, log_rhos=log_rhos
    )
    ratio = tf.exp(tf.minimum(log_rhos, 0.0))
    return _targets(q_t, v_t, r_t, discount_t, ratio, lambda_, continues_t) - q_tm1


def _targets(
    q_t: tf.Tensor,
    v_t: tf.Tensor,
    r_t: tf.Tensor,
    discount_t: tf.Tensor,
    ratio: tf.Tensor,
    lambda_: Any,
    continues_t: Any,
) -> tf.Tensor:
    check_scalar_or_same_shape(r_t=r_t, lambda_=lambda_)
    mix = tf.cast(lambda_, r_t.dtype) * sequences.as_continues(continues_t, r_t)
    mix = tf.concat([mix[:-1], tf.zeros_like(mix[-1:])], axis=0)
    c_t = tf.math.multiply_no_nan(ratio, mix)
    bootstrap = v_t - tf.math.multiply_no_nan(q_t, c_t)
    one_step = r_t + tf.math.multiply_no_nan(bootstrap, discount_t)
    return tf.stop_gradient(sequences.solve_backwards(one_step, discount_t * c_t))
