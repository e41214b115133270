"""Computes the losses of Proximal Policy Optimization, and measures for its log.

Schulman et al., "Proximal policy optimization algorithms" (2017, arXiv:1707.06347).

The logarithm of the importance ratio is `log pi(a|s) - log pi_old(a|s)`, where `pi_old`
is the policy that collected the data. Losses are per step, `[B]` or `[B, T]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.aggregation import masked_mean
from tfrl.losses.sequences import as_sequences
from tfrl.losses.shapes import check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


def clipped_surrogate(
    log_ratio: types.TensorLike,
    advantages: types.TensorLike,
    clip_range: float | tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns `-min(ratio A, clip(ratio, 1 - c, 1 + c) A)`.

    Schulman et al. 2017, equation 7. Without a range it is `-ratio A`, equation 6.

    Args:
      log_ratio: The logarithms of the importance ratios, `[B]` or `[B, T]`.
      advantages: Like `log_ratio`.
      clip_range: The number or scalar `c`; None does not clip.

    Raises:
      ValueError: A shape is wrong.
    """
    log_ratio, advantages = as_sequences(log_ratio=log_ratio, advantages=advantages)
    check_scalars(clip_range=clip_range)
    ratio = tf.exp(log_ratio)
    if clip_range is None:
        return -ratio * advantages
    clipped = tf.clip_by_value(ratio, 1.0 - clip_range, 1.0 + clip_range)
    return -tf.minimum(ratio * advantages, clipped * advantages)


def clipped_value_loss(
    values: types.TensorLike,
    returns: types.TensorLike,
    old_values: types.TensorLike | None = None,
    clip_range: float | tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the larger squared error of a prediction and its clipped version.

        max((G - V)^2, (G - V_old - clip(V - V_old, -c, c))^2)

    As in OpenAI's Baselines; Engstrom et al., "Implementation matters in deep policy
    gradients" (2020, arXiv:2005.12729), section 3. There is no factor of a half.
    Without a range the result is `(G - V)^2`.

    Args:
      values: The predictions `V`, `[B]` or `[B, T]`.
      returns: The returns `G`, like `values`.
      old_values: The predictions `V_old` before the update, like `values`; needed with
        a range.
      clip_range: The number or scalar `c`; None does not clip.

    Raises:
      ValueError: A shape is wrong.
    """
    values, returns = as_sequences(values=values, returns=returns)
    check_scalars(clip_range=clip_range)
    loss = tf.math.squared_difference(returns, values)
    if clip_range is None:
        return loss
    values, old_values = as_sequences(values=values, old_values=old_values)
    near = old_values + tf.clip_by_value(values - old_values, -clip_range, clip_range)
    return tf.maximum(loss, tf.math.squared_difference(returns, near))


def kl_cutoff_penalty(
    mean_kl: types.TensorLike, cutoff: types.TensorLike, coefficient: types.TensorLike
) -> tf.Tensor:
    """Returns `coefficient * max(0, mean_kl - cutoff)^2`, a scalar.

    TF-Agents' PPO adds it to the adaptive penalty `beta * mean_kl` of Schulman et al.
    2017, equation 8.

    Args:
      mean_kl: The mean KL divergence of the old and the new policy, `[]`.
      cutoff: The divergence above which there is a penalty, `[]`.
      coefficient: The weight of the penalty, `[]`.

    Raises:
      ValueError: An argument is not a scalar.
    """
    check_scalars(mean_kl=mean_kl, cutoff=cutoff, coefficient=coefficient)
    mean_kl = tf.convert_to_tensor(mean_kl)
    return coefficient * tf.square(tf.maximum(mean_kl - cutoff, 0.0))


def adapted_kl_beta(
    beta: types.TensorLike,
    mean_kl: types.TensorLike,
    target: float | tf.Tensor,
    tolerance: float | tf.Tensor = 0.5,
) -> tf.Tensor:
    """Returns the weight of the KL penalty for the next update, a scalar.

    It is `beta / 1.5` if the divergence is below `target (1 - tolerance)`, `1.5 beta`
    if it is above `target (1 + tolerance)`, else `beta`, and it is kept in [1e-15,
    1e17]. Schulman et al. 2017, section 4, have a tolerance of about a half, and the
    factor 2.

    Args:
      beta: The current weight, `[]`.
      mean_kl: The mean KL divergence after the update, `[]`.
      target: The divergence to reach, `[]`.
      tolerance: A number in [0, 1).

    Raises:
      ValueError: An argument is not a scalar.
    """
    check_scalars(beta=beta, mean_kl=mean_kl, target=target, tolerance=tolerance)
    mean_kl = tf.convert_to_tensor(mean_kl)
    is_low = mean_kl < target * (1.0 - tolerance)
    is_high = mean_kl > target * (1.0 + tolerance)
    factor = tf.where(is_low, 1 / 1.5, tf.where(is_high, 1.5, 1.0))
    return tf.clip_by_value(beta * factor, 1e-15, 1e17)


def approx_kl(log_ratio: types.TensorLike) -> tf.Tensor:
    """Returns `ratio - 1 - log ratio`, which is never negative.

    Its mean over actions of the old policy is the KL divergence of the old and the new
    policy. Schulman, "Approximating KL divergence" (2020), estimator k3.

    Args:
      log_ratio: The logarithms of the importance ratios, `[B]` or `[B, T]`.

    Raises:
      ValueError: The rank is wrong.
    """
    (log_ratio,) = as_sequences(log_ratio=log_ratio)
    return tf.math.expm1(log_ratio) - log_ratio


def clip_fraction(
    log_ratio: types.TensorLike, clip_range: types.TensorLike, mask: types.TensorLike
) -> tf.Tensor:
    """Returns the share of steps whose ratio is outside of [1 - c, 1 + c], `[]`.

    Args:
      log_ratio: The logarithms of the importance ratios, `[B]` or `[B, T]`.
      clip_range: The number or scalar `c`.
      mask: The steps that count, bools like `log_ratio`.

    Raises:
      ValueError: A shape is wrong.
    """
    log_ratio, mask = as_sequences(log_ratio=log_ratio, mask=mask)
    check_scalars(clip_range=clip_range)
    outside = tf.abs(tf.math.expm1(log_ratio)) > clip_range
    return masked_mean(tf.cast(outside, tf.float32), mask)


def explained_variance(
    values: types.TensorLike, returns: types.TensorLike, mask: types.TensorLike
) -> tf.Tensor:
    """Returns `1 - Var(G - V) / Var(G)`, the explained variance, `[]`.

    It is 1 for perfect predictions, 0 for constant predictions, and negative for worse
    predictions. If all returns are equal, it is 0, too.

    Args:
      values: The predictions `V`, `[B]` or `[B, T]`.
      returns: The returns `G`, like `values`.
      mask: The steps that count, bools like `values`.

    Raises:
      ValueError: A shape is wrong.
    """
    values, returns, mask = as_sequences(values=values, returns=returns, mask=mask)
    variance = _masked_variance(returns, mask)
    share = tf.math.divide_no_nan(_masked_variance(returns - values, mask), variance)
    return tf.where(variance > 0, 1.0 - share, 0.0)


def distillation_error(
    predicted: types.TensorLike, fixed: types.TensorLike
) -> tf.Tensor:
    """Returns the mean square of the differences of two vectors.

    Burda et al., "Exploration by random network distillation" (2018,
    arXiv:1810.12894), section 2.2; their sum over the components is `n` times this
    mean.

    Args:
      predicted: The trained network's outputs, `[..., n]`.
      fixed: The fixed network's outputs, like `predicted`, which get no gradient.

    Returns:
      `[...]`.

    Raises:
      ValueError: The shapes differ.
    """
    predicted, fixed = map(tf.convert_to_tensor, (predicted, fixed))
    check_same_shape(predicted=predicted, fixed=fixed)
    difference = predicted - tf.stop_gradient(fixed)
    return tf.reduce_mean(tf.square(difference), axis=-1)


def _masked_variance(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    return masked_mean(tf.math.squared_difference(x, masked_mean(x, mask)), mask)
