"""Computes the losses of agents that learn from recorded data alone.

Kumar et al., "Conservative Q-learning for offline reinforcement learning" (2020,
arXiv:2006.04779); Kostrikov et al., "Offline reinforcement learning with implicit
Q-learning" (2021, arXiv:2110.06169); Fujimoto and Gu, "A minimalist approach to offline
reinforcement learning" (2021, arXiv:2106.06860); Tarasov et al., "Revisiting the
minimalist approach to offline reinforcement learning" (2023, arXiv:2305.09836); An et
al., "Uncertainty-based offline reinforcement learning with diversified Q-ensemble"
(2021, arXiv:2110.01548).

Losses are per example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_ranks, check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


def conservative_penalty(
    data_q: types.TensorLike,
    sampled_q: types.TensorLike,
    log_densities: types.TensorLike | None = None,
    temperature: float = 1.0,
) -> tf.Tensor:
    """Returns the soft maximum of Q over actions, minus Q of the recorded action.

        1/T log sum_k exp(T Q(s, a_k) - log p(a_k)) - Q(s, a)

    For drawn actions the sum is `K` times an estimate, by importance sampling, of the
    integral of `exp(T Q)` over all actions. For all discrete actions, without
    densities, it is exact. Kumar et al. 2020, equation 4 and appendix F.

    Args:
      data_q: The values of the recorded actions, `[B]`, or `[B, T]` for sequences.
      sampled_q: The values of `K` drawn actions of each state, or of all `K` discrete
        actions, `[K, B]` or `[K, B, T]`.
      log_densities: The logarithms of the densities with which these actions were
        drawn, like `sampled_q`; None for all discrete actions.
      temperature: The factor `T` of the equation; the larger it is, the closer the soft
        maximum is to the maximum.

    Returns:
      The penalties, like `data_q`.

    Raises:
      ValueError: The shapes do not fit.
    """
    data_q, sampled_q = tf.convert_to_tensor(data_q), tf.convert_to_tensor(sampled_q)
    check_ranks((2, 3), sampled_q=sampled_q)
    check_same_shape(one_of_sampled_q=sampled_q.shape[1:], data_q=data_q)
    check_scalars(temperature=temperature)
    exponents = temperature * sampled_q
    if log_densities is not None:
        log_densities = tf.convert_to_tensor(log_densities)
        check_same_shape(sampled_q=sampled_q, log_densities=log_densities)
        exponents -= log_densities
    return tf.reduce_logsumexp(exponents, axis=0) / temperature - data_q


def expectile_loss(error: types.TensorLike, expectile: float) -> tf.Tensor:
    """Returns `|expectile - 1(error < 0)| error^2`, of the shape of `error`.

    With errors `target - prediction`, the best prediction is the expectile of the
    targets: their mean if `expectile` is 0.5, and nearly their maximum if `expectile`
    is close to 1. Kostrikov et al. 2021, section 4.1 and equation 5.

    Args:
      error: Targets minus predictions.
      expectile: A number in (0, 1).

    Raises:
      ValueError: `expectile` is not a scalar.
    """
    check_scalars(expectile=expectile)
    error = tf.convert_to_tensor(error)
    weight = tf.where(error < 0, 1 - expectile, expectile)
    return tf.cast(weight, error.dtype) * tf.square(error)


def advantage_weighted_loss(
    log_prob: types.TensorLike,
    advantage: types.TensorLike,
    inverse_temperature: float,
    max_weight: float,
) -> tf.Tensor:
    """Returns `-min(exp(beta advantage), max_weight) log_prob`, of their shape.

    Kostrikov et al. 2021, equation 7. No gradient flows into the advantages.

    Args:
      log_prob: The log-probabilities of the recorded actions.
      advantage: The actions' values minus the states' values, like `log_prob`.
      inverse_temperature: The factor beta; 0 is behavioural cloning.
      max_weight: The largest weight of an example.

    Raises:
      ValueError: The shapes differ.
    """
    log_prob, advantage = map(tf.convert_to_tensor, (log_prob, advantage))
    check_same_shape(log_prob=log_prob, advantage=advantage)
    check_scalars(inverse_temperature=inverse_temperature, max_weight=max_weight)
    # The exponent is clipped, so that the weight is never infinite.
    exponent = tf.minimum(
        inverse_temperature * advantage, tf.math.log(tf.cast(max_weight, tf.float32))
    )
    return -tf.stop_gradient(tf.exp(exponent)) * log_prob


def cloned_policy_gradient(
    value: types.TensorLike,
    distance: types.TensorLike,
    mean_size: types.TensorLike,
    alpha: float,
) -> tf.Tensor:
    """Returns `distance - alpha value / mean_size`, of the shape of `value`.

    It draws an actor towards the recorded actions and towards greater values, whose
    units do not matter. Fujimoto and Gu 2021, equations 4 and 5.

    Args:
      value: The values of the actor's actions.
      distance: The squared distances of these actions from the recorded ones, like
        `value`.
      mean_size: The mean of the sizes of the values, a scalar. No gradient flows into
        it; if it is 0, only the distances count.
      alpha: The weight of the values; 0 is behavioural cloning.

    Raises:
      ValueError: The shapes do not fit.
    """
    value, distance = map(tf.convert_to_tensor, (value, distance))
    check_same_shape(value=value, distance=distance)
    check_scalars(mean_size=mean_size, alpha=alpha)
    weight = tf.math.divide_no_nan(tf.cast(alpha, value.dtype), mean_size)
    return distance - tf.stop_gradient(weight) * value


def penalized_value(
    value: types.TensorLike, distance: types.TensorLike, penalty: float
) -> tf.Tensor:
    """Returns `value - penalty distance`, of the shape of `value`.

    It lowers the values of next actions that are unlike the recorded ones. Tarasov et
    al. 2023, section 3.

    Args:
      value: The values of actions.
      distance: Their squared distances from the recorded ones, like `value`.
      penalty: The weight of the distances.

    Raises:
      ValueError: The shapes do not fit.
    """
    value, distance = map(tf.convert_to_tensor, (value, distance))
    check_same_shape(value=value, distance=distance)
    check_scalars(penalty=penalty)
    return value - penalty * distance


def gradient_similarity(gradients: types.TensorLike) -> tf.Tensor:
    """Returns how alike the directions are in which critics rise, `[B]`.

        1/(N - 1) sum_{i != j} <g_i, g_j> / (|g_i| |g_j|)

    An et al. 2021, equation 4. It is N if all directions are the same, and least where
    they are spread evenly. A gradient of 0 has no direction, and counts as 0.

    Args:
      gradients: The gradients of `N` critics with respect to the components of actions,
        `[N, B, A]`.

    Raises:
      ValueError: The rank is wrong.
    """
    gradients = tf.convert_to_tensor(gradients)
    check_ranks((3,), gradients=gradients)
    directions = tf.math.l2_normalize(gradients, axis=-1, epsilon=1e-20)
    # The sum over all pairs is the square of the sum; that over i = j is left out.
    of_all = tf.reduce_sum(tf.square(tf.reduce_sum(directions, axis=0)), axis=-1)
    own = tf.reduce_sum(tf.square(directions), axis=[0, 2])
    return (of_all - own) / (gradients.shape[0] - 1)
