"""Losses of world models, and of what is learned in imagination.

Hafner et al., "Mastering diverse control tasks through world models" (Nature, 2025;
arXiv:2301.04104).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_same_shape, check_scalars
from tfrl.losses.value_rescaling import signed_logp1

if TYPE_CHECKING:
    from tfrl.typing import types


def mixed_with_uniform(logits: types.TensorLike, share: float = 0.01) -> tf.Tensor:
    """Returns normalized logits of `(1 - share) softmax(logits) + share / C`.

    So no class has the probability 0, and divergences stay finite.

    Args:
      logits: Logits `[..., C]`.
      share: The share of the uniform distribution, in [0, 1].

    Raises:
      ValueError: `share` is not a scalar.
    """
    check_scalars(share=share)
    logits = tf.convert_to_tensor(logits)
    uniform = share / tf.cast(tf.shape(logits)[-1], logits.dtype)
    return tf.math.log((1 - share) * tf.nn.softmax(logits) + uniform)


def categorical_kl(logits: types.TensorLike, other: types.TensorLike) -> tf.Tensor:
    """Returns `sum_s KL(p_s || q_s)` of independent categorical variables, `[...]`.

    Args:
      logits: Normalized logits of `p`, `[..., S, C]`.
      other: Normalized logits of `q`, `[..., S, C]`.

    Raises:
      ValueError: The shapes differ.
    """
    logits, other = tf.convert_to_tensor(logits), tf.convert_to_tensor(other)
    check_same_shape(logits=logits, other=other)
    return tf.reduce_sum(tf.exp(logits) * (logits - other), axis=[-2, -1])


def balanced_kl(
    posterior: types.TensorLike, prior: types.TensorLike, free_nats: float = 1.0
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the losses of the dynamics and of the representation, each `[...]`.

        max(free, KL(sg(post) || prior)),  max(free, KL(post || sg(prior)))

    Equation 5.

    Args:
      posterior: Normalized logits, `[..., S, C]`.
      prior: Normalized logits, `[..., S, C]`.
      free_nats: The divergence below which a loss has no gradient.

    Raises:
      ValueError: The shapes differ.
    """
    posterior, prior = tf.convert_to_tensor(posterior), tf.convert_to_tensor(prior)
    check_same_shape(posterior=posterior, prior=prior)
    check_scalars(free_nats=free_nats)
    still_post, still_prior = map(tf.stop_gradient, (posterior, prior))
    dynamics = categorical_kl(still_post, prior)
    representation = categorical_kl(posterior, still_prior)
    return tf.maximum(dynamics, free_nats), tf.maximum(representation, free_nats)


def symlog_loss(prediction: types.TensorLike, target: types.TensorLike) -> tf.Tensor:
    """Returns `|prediction - symlog(target)|^2`, summed over the last axis, `[...]`.

    Equation 10, without the half, as in the authors' code.

    Args:
      prediction: Predictions of `symlog` of numbers, `[..., n]`.
      target: The numbers, `[..., n]`; they get no gradient.

    Raises:
      ValueError: The shapes differ.
    """
    prediction = tf.convert_to_tensor(prediction)
    target = tf.stop_gradient(signed_logp1(target))
    check_same_shape(prediction=prediction, target=target)
    return tf.reduce_sum(tf.math.squared_difference(prediction, target), axis=-1)


def imagined_actor_loss(
    log_prob: types.TensorLike,
    advantage: types.TensorLike,
    entropy: types.TensorLike,
    entropy_regularization: types.TensorLike,
) -> tf.Tensor:
    """Returns `-sg(advantage) log pi(a|s) - eta H`, in the shape of `log_prob`.

    Equation 11.

    Args:
      log_prob: The logarithms of the probabilities of the actions.
      advantage: The scaled advantages, like `log_prob`, which get no gradient.
      entropy: The entropies of the policy, like `log_prob`.
      entropy_regularization: The weight of the entropy, a scalar.

    Raises:
      ValueError: The shapes differ.
    """
    check_same_shape(log_prob=log_prob, advantage=advantage, entropy=entropy)
    check_scalars(entropy_regularization=entropy_regularization)
    gain = tf.stop_gradient(advantage) * log_prob
    return -gain - entropy_regularization * tf.convert_to_tensor(entropy)


def percentile_range(
    values: types.TensorLike, low: float = 5.0, high: float = 95.0
) -> tf.Tensor:
    """Returns the range between two percentiles of all values, a scalar.

    Equation 12. Values between two neighbours are interpolated.

    Args:
      values: Numbers of any shape; they get no gradient.
      low: The lower percentile.
      high: The upper percentile.
    """
    ordered = tf.sort(tf.reshape(tf.stop_gradient(values), [-1]))
    last = tf.cast(tf.shape(ordered)[0] - 1, ordered.dtype)

    def percentile(percent: float) -> tf.Tensor:
        position = percent / 100 * last
        below = tf.floor(position)
        pair = tf.stack([below, tf.math.ceil(position)])
        first, second = tf.unstack(tf.gather(ordered, tf.cast(pair, tf.int32)), 2)
        return first + (position - below) * (second - first)

    return percentile(high) - percentile(low)
