"""Computes the losses of maximum a posteriori policy optimisation (MPO).

Abdolmaleki et al., "Maximum a posteriori policy optimisation" (2018, arXiv:1806.06920);
Abdolmaleki et al., "Relative entropy regularized policy iteration" (2018,
arXiv:1812.02256), for separate KL constraints of the mean and of the standard
deviation; Abdolmaleki et al., "A distributional view on multi-objective policy
optimization" (2020, arXiv:2005.07513), for several objectives.

`N` actions of each of `B` states are drawn from the target policy. They are weighted by
their values, and the online policy is fitted to the weighted actions, where it may move
away from the target policy by a limited KL divergence. Policies are normal
distributions of `D` independent numbers. Losses are per state, `[B]`; the modules that
own the dual variables are in `mpo_module`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses.shapes import (
    check_ranks,
    check_same_shape,
    check_scalar_or_same_shape,
    check_scalars,
    shape_of,
)

if TYPE_CHECKING:
    from tfrl.typing import types


def dual_of(log_dual: types.TensorLike) -> tf.Tensor:
    """Returns `softplus(log_dual) + 1e-8`, a positive dual variable."""
    return tf.math.softplus(tf.convert_to_tensor(log_dual)) + 1e-8


def mpo_weights(values: types.TensorLike, temperature: types.TensorLike) -> tf.Tensor:
    """Returns `softmax(values / temperature)` over the actions, without a gradient.

    The weights turn samples of the target policy into an improved policy
    (arXiv:1812.02256, section 4.1).

    Args:
      values: The values of the actions, `[N, B]`, or `[N, B, K]` for `K` objectives.
      temperature: The temperature, `[]`, or `[K]`.

    Returns:
      Weights of the shape of `values`, whose sums over the first axis are 1.

    Raises:
      ValueError: A shape is wrong.
    """
    values = tf.convert_to_tensor(values)
    _check_of_objectives(values, temperature=temperature)
    return tf.stop_gradient(tf.nn.softmax(values / temperature, axis=0))


def mpo_temperature_loss(
    values: types.TensorLike, temperature: types.TensorLike, epsilon: types.TensorLike
) -> tf.Tensor:
    """Returns `T (epsilon + log mean_n exp(values_n / T))`, a loss of `T` alone.

    This is the dual function of a constraint: the KL divergence of the weights from
    uniform weights is at most `epsilon` (arXiv:1812.02256, section 4.1).

    Args:
      values: The values of the actions, `[N, B]`, or `[N, B, K]`.
      temperature: The temperature `T`, `[]`, or `[K]`.
      epsilon: The largest divergence, `[]`, or `[K]`.

    Returns:
      `[B]`, or `[B, K]`.

    Raises:
      ValueError: A shape is wrong.
    """
    values = tf.stop_gradient(tf.convert_to_tensor(values))
    _check_of_objectives(values, temperature=temperature, epsilon=epsilon)
    log_number = tf.math.log(tf.cast(tf.shape(values)[0], values.dtype))
    log_mean = tf.reduce_logsumexp(values / temperature, axis=0) - log_number
    return temperature * (epsilon + log_mean)


def weights_kl(weights: types.TensorLike) -> tf.Tensor:
    """Returns `sum_n w_n log(N w_n)`, the divergence of weights from uniform weights.

    Args:
      weights: Weights of actions, `[N, B]`, or `[N, B, K]`.

    Returns:
      `[B]`, or `[B, K]`.

    Raises:
      ValueError: The rank is wrong.
    """
    weights = tf.convert_to_tensor(weights)
    check_ranks((2, 3), weights=weights)
    number = tf.cast(tf.shape(weights)[0], weights.dtype)
    return tf.reduce_sum(weights * tf.math.log(number * weights + 1e-8), axis=0)


def out_of_bounds_value(actions: types.TensorLike) -> tf.Tensor:
    """Returns minus the distance of actions from [-1, 1], an objective of MPO.

    Args:
      actions: Actions in which [-1, 1] is the range of each number, `[N, B, D]`.

    Returns:
      `[N, B]`, 0 for actions inside the range.

    Raises:
      ValueError: The rank is wrong.
    """
    actions = tf.convert_to_tensor(actions)
    check_ranks((3,), actions=actions)
    excess = actions - tf.clip_by_value(actions, -1.0, 1.0)
    return -tf.norm(excess, axis=-1)


def weighted_cross_entropy(
    actions: types.TensorLike,
    weights: types.TensorLike,
    mean: types.TensorLike,
    stddev: types.TensorLike,
) -> tf.Tensor:
    """Returns `-sum_n w_n log N(a_n; mean, stddev^2)`, the loss of the fitted policy.

    arXiv:1812.02256, section 4.2, without its limits on the KL divergence.

    Args:
      actions: The actions, `[N, B, D]`.
      weights: Their weights, `[N, B]`.
      mean: The means of the policy, `[B, D]`.
      stddev: The standard deviations of the policy, `[B, D]`.

    Returns:
      `[B]`.

    Raises:
      ValueError: A shape is wrong.
    """
    actions, weights = tf.convert_to_tensor(actions), tf.convert_to_tensor(weights)
    mean, stddev = tf.convert_to_tensor(mean), tf.convert_to_tensor(stddev)
    check_ranks((3,), actions=actions)
    check_ranks((2,), weights=weights)
    check_same_shape(one_number_of_actions=actions.shape[:-1], weights=weights)
    check_same_shape(one_of_actions=actions.shape[1:], mean=mean, stddev=stddev)
    log_density = (
        -0.5 * tf.square((actions - mean) / stddev)
        - tf.math.log(stddev)
        - 0.5 * math.log(2 * math.pi)
    )
    return -tf.reduce_sum(weights * tf.reduce_sum(log_density, axis=-1), axis=0)


def kl_of_means(
    target_mean: tf.Tensor, target_stddev: tf.Tensor, online_mean: tf.Tensor
) -> tf.Tensor:
    """Returns `KL(N(m', s') || N(m, s'))` of each number, `[B, D]`.

    Only the mean of the online policy counts; arXiv:1812.02256, section 4.2.

    Args:
      target_mean: The means `m'` of the target policy, `[B, D]`.
      target_stddev: The standard deviations `s'` of the target policy, `[B, D]`.
      online_mean: The means `m` of the online policy, `[B, D]`.

    Raises:
      ValueError: A shape is wrong.
    """
    check_same_shape(
        target_mean=target_mean, target_stddev=target_stddev, online_mean=online_mean
    )
    return 0.5 * tf.square((target_mean - online_mean) / target_stddev)


def kl_of_stddevs(
    target_stddev: types.TensorLike, online_stddev: types.TensorLike
) -> tf.Tensor:
    """Returns `KL(N(m', s') || N(m', s))` of each number, `[B, D]`.

    Only the standard deviation of the online policy counts.

    Args:
      target_stddev: The standard deviations `s'` of the target policy, `[B, D]`.
      online_stddev: The standard deviations `s` of the online policy, `[B, D]`.

    Raises:
      ValueError: A shape is wrong.
    """
    check_same_shape(target_stddev=target_stddev, online_stddev=online_stddev)
    ratio = tf.convert_to_tensor(target_stddev) / online_stddev
    return 0.5 * (tf.square(ratio) - 1) - tf.math.log(ratio)


def kl_penalty(kl: types.TensorLike, alpha: types.TensorLike) -> tf.Tensor:
    """Returns `sum_d alpha_d kl_d`, a loss of the policy alone, `[B]`.

    Args:
      kl: The divergences, `[B, D]`.
      alpha: The dual variables of their constraints, `[D]`.

    Raises:
      ValueError: A shape is wrong.
    """
    _check_of_dimensions(kl, alpha)
    return tf.reduce_sum(tf.stop_gradient(alpha) * kl, axis=-1)


def kl_dual_loss(
    kl: types.TensorLike, alpha: types.TensorLike, epsilon: types.TensorLike
) -> tf.Tensor:
    """Returns `sum_d alpha_d (epsilon - kl_d)`, a loss of `alpha` alone, `[B]`.

    Minimising it raises `alpha` where the divergence is above `epsilon`.

    Args:
      kl: The divergences, `[B, D]`.
      alpha: The dual variables of their constraints, `[D]`.
      epsilon: The largest divergence, `[]`.

    Raises:
      ValueError: A shape is wrong.
    """
    _check_of_dimensions(kl, alpha)
    check_scalars(epsilon=epsilon)
    return tf.reduce_sum(alpha * (epsilon - tf.stop_gradient(kl)), axis=-1)


def _check_of_objectives(values: tf.Tensor, **of_objectives: Any) -> None:
    check_ranks((2, 3), values=values)
    check_scalar_or_same_shape(objectives_of_values=values.shape[2:], **of_objectives)


def _check_of_dimensions(kl: Any, alpha: Any) -> None:
    check_ranks((2,), kl=kl)
    check_same_shape(one_example_of_kl=shape_of(kl)[1:], alpha=alpha)
