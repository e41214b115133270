"""Computes the targets and advantages of V-trace from another policy's sequences.

Espeholt et al., "IMPALA: Scalable distributed deep-RL with importance weighted
actor-learner architectures" (2018, arXiv:1802.01561), section 4.1. Zahavy et al., "A
self-tuning actor-critic algorithm" (2020, arXiv:2002.12928), for leaky V-trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl.losses import sequences
from tfrl.losses.shapes import check_scalar_or_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


class VTraceReturns(NamedTuple):
    """The result of V-trace, without gradient; each field is `[T]` or `[T, B]`.

    Attributes:
      vs: The targets of the values.
      pg_advantages: The advantages of the actions, times their clipped ratios.
    """

    vs: tf.Tensor
    pg_advantages: tf.Tensor


def vtrace(
    v_tm1: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
    log_rhos: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    clip_rho: float | None = 1.0,
    clip_pg_rho: float | None = 1.0,
    continues_t: types.TensorLike | None = None,
) -> VTraceReturns:
    """Returns V-trace's targets and advantages.

        vs_t = v_tm1 + delta_t + discount_t c_t (vs_(t+1) - v_t),    vs_T = v_(T-1)
        delta_t = min(clip_rho, rho_t) (r_t + discount_t v_t - v_tm1)
        A_t = min(clip_pg_rho, rho_t) (r_t + discount_t q_t - v_tm1)
        q_t = (1 - l_t) v_t + l_t vs_(t+1)

    Espeholt et al. 2018, equation 1 and the gradient after it, with `rho_t = pi / mu`,
    `c_t = l_t min(1, rho_t)` and `l_t = lambda_ continues_t`. The arguments follow
    `losses.returns`. With ratios of 1, `vs` are the lambda returns, and
    `pg_advantages` are the advantages of generalized advantage estimation.

    Args:
      v_tm1: Values of the states before each step, `[T]` or `[T, B]`.
      r_t: Rewards, like `v_tm1`.
      discount_t: Discounts, like `v_tm1`.
      v_t: Values of the states after each step, like `v_tm1`; at a truncation, the
        value of the last observation.
      log_rhos: `log pi(a) - log mu(a)` of the actions, for the policy `pi` that learns
        and the policy `mu` that acted, like `v_tm1`.
      lambda_: A number in [0, 1], or numbers like `v_tm1`.
      clip_rho: The largest ratio in `delta_t`; None does not clip.
      clip_pg_rho: The largest ratio in `A_t`; None does not clip.
      continues_t: 1 where step `t + 1` continues the episode of step `t`, else 0, like
        `v_tm1`; all 1 if None.

    Raises:
      ValueError: A tensor has another rank, or the shapes differ.
    """
    return _returns(
        v_tm1,
        r_t,
        discount_t,
        v_t,
        log_rhos,
        lambda_,
        clip_rho,
        clip_pg_rho,
        continues_t,
        _clipped,
    )


def leaky_vtrace(
    v_tm1: types.TensorLike,
    r_t: types.TensorLike,
    discount_t: types.TensorLike,
    v_t: types.TensorLike,
    log_rhos: types.TensorLike,
    alpha: types.TensorLike,
    lambda_: types.TensorLike = 1.0,
    clip_rho: float | None = 1.0,
    clip_pg_rho: float | None = 1.0,
    continues_t: types.TensorLike | None = None,
) -> VTraceReturns:
    """Returns V-trace's targets and advantages with ratios that are clipped in part.

    Each `min(clip, rho_t)` of `vtrace` is here

        alpha min(clip, rho_t) + (1 - alpha) rho_t

    Zahavy et al. 2020, the definition of leaky V-trace, with one weight for the ratios
    of `delta_t` and of `c_t`. With `alpha` 1 this is `vtrace`, and with 0 it is
    importance sampling.

    Args:
      v_tm1: See `vtrace`.
      r_t: See `vtrace`.
      discount_t: See `vtrace`.
      v_t: See `vtrace`.
      log_rhos: See `vtrace`.
      alpha: The weight of the clipped ratios, a number or scalar in [0, 1].
      lambda_: See `vtrace`.
      clip_rho: See `vtrace`.
      clip_pg_rho: See `vtrace`.
      continues_t: See `vtrace`.

    Raises:
      ValueError: As for `vtrace`, or `alpha` is not a scalar.
    """
    check_scalars(alpha=alpha)

    def leaky(rho_t: tf.Tensor, most: float | None) -> tf.Tensor:
        return rho_t + tf.cast(alpha, rho_t.dtype) * (_clipped(rho_t, most) - rho_t)

    return _returns(
        v_tm1,
        r_t,
        discount_t,
        v_t,
        log_rhos,
        lambda_,
        clip_rho,
        clip_pg_rho,
        continues_t,
        leaky,
    )


def _returns(
    v_tm1: Any,
    r_t: Any,
    discount_t: Any,
    v_t: Any,
    log_rhos: Any,
    lambda_: Any,
    clip_rho: float | None,
    clip_pg_rho: float | None,
    continues_t: Any,
    clip: Callable[[tf.Tensor, float | None], tf.Tensor],
) -> VTraceReturns:
    v_tm1, r_t, discount_t, v_t, log_rhos = sequences.as_sequences(
        v_tm1=v_tm1, r_t=r_t, discount_t=discount_t, v_t=v_t, log_rhos=log_rhos
    )
    check_scalar_or_same_shape(r_t=r_t, lambda_=lambda_)
    check_scalars(clip_rho=clip_rho, clip_pg_rho=clip_pg_rho)
    rho_t = tf.exp(log_rhos)
    mix = tf.cast(lambda_, r_t.dtype) * sequences.as_continues(continues_t, r_t)
    td_error = r_t + discount_t * v_t - v_tm1
    # The differences between the targets and the values.
    corrections = sequences.solve_backwards(
        clip(rho_t, clip_rho) * td_error, discount_t * mix * clip(rho_t, 1.0)
    )
    following = discount_t * mix * sequences.shift(corrections, 1)
    return VTraceReturns(
        vs=tf.stop_gradient(v_tm1 + corrections),
        pg_advantages=tf.stop_gradient(
            clip(rho_t, clip_pg_rho) * (td_error + following)
        ),
    )


def _clipped(rho_t: tf.Tensor, most: float | None) -> tf.Tensor:
    return rho_t if most is None else tf.minimum(rho_t, tf.cast(most, rho_t.dtype))
