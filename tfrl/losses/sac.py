"""Computes the targets and losses of Soft Actor-Critic and its relatives.

Haarnoja et al., "Soft actor-critic algorithms and applications" (2018,
arXiv:1812.05905); Christodoulou, "Soft actor-critic for discrete action settings"
(2019, arXiv:1910.07207); Chen et al., "Randomized ensembled double Q-learning" (2021,
arXiv:2101.05982); Kuznetsov et al., "Controlling overestimation bias with truncated
mixture of continuous distributional quantile critics" (2020, arXiv:2005.04269), whose
loss is `quantile_huber_loss`.

`alpha` is the temperature, the weight of the entropy. Losses are per example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_ranks, check_same_shape, check_scalars

if TYPE_CHECKING:
    from tfrl.typing import types


def soft_value(
    q: types.TensorLike, log_prob: types.TensorLike, alpha: types.TensorLike
) -> tf.Tensor:
    """Returns `q - alpha log_prob`, a sample of the soft value of a state.

    Haarnoja et al. 2018, equation 3.

    Args:
      q: The values of actions drawn from the policy, `[B]` or `[B, T]`.
      log_prob: The log-probabilities of these actions, like `q`.
      alpha: The temperature, `[]`.

    Raises:
      ValueError: The shapes differ, or `alpha` is not a scalar.
    """
    q, log_prob = tf.convert_to_tensor(q), tf.convert_to_tensor(log_prob)
    check_same_shape(q=q, log_prob=log_prob)
    check_scalars(alpha=alpha)
    return q - alpha * log_prob


def expected_soft_value(
    q: types.TensorLike, log_probs: types.TensorLike, alpha: types.TensorLike
) -> tf.Tensor:
    """Returns `sum_a pi(a) (q(a) - alpha log pi(a))`, the soft value of a state.

    Christodoulou 2019, equation 10.

    Args:
      q: The values of all actions, `[..., A]`.
      log_probs: The logarithms of the actions' probabilities, `[..., A]`. An action of
        probability 0 does not count.
      alpha: The temperature, `[]`.

    Raises:
      ValueError: The shapes differ, or `alpha` is not a scalar.
    """
    q, log_probs = tf.convert_to_tensor(q), tf.convert_to_tensor(log_probs)
    check_same_shape(q=q, log_probs=log_probs)
    check_scalars(alpha=alpha)
    probs = tf.exp(log_probs)
    possible = probs > 0
    # The values are masked before the product, so that no gradient is NaN.
    finite = tf.where(possible, log_probs, 0.0)
    return tf.reduce_sum(probs * tf.where(possible, q - alpha * finite, 0.0), axis=-1)


def entropy_of(log_probs: types.TensorLike) -> tf.Tensor:
    """Returns the entropy `[...]` of the probabilities whose logarithms are given."""
    log_probs = tf.convert_to_tensor(log_probs)
    return expected_soft_value(tf.zeros_like(log_probs), log_probs, 1.0)


def sac_actor_loss(
    q: types.TensorLike, log_prob: types.TensorLike, alpha: types.TensorLike
) -> tf.Tensor:
    """Returns `alpha log_prob - q`, whose gradient flows through the actions.

    Haarnoja et al. 2018, equation 9. The arguments are as for `soft_value`. For
    discrete actions the loss is `-expected_soft_value`.
    """
    return -soft_value(q, log_prob, tf.stop_gradient(alpha))


def temperature_loss(
    log_alpha: types.TensorLike,
    entropy: types.TensorLike,
    target_entropy: types.TensorLike,
    use_log_alpha: bool = True,
) -> tf.Tensor:
    """Returns `c (entropy - target_entropy)`, a loss of the temperature alone.

    Minimising it raises the temperature where the entropy is below the target.
    Haarnoja et al. 2018, equation 18, has `c = alpha`; with `c = log alpha`, as in the
    authors' code, the size of a step does not depend on `alpha`.

    Args:
      log_alpha: The logarithm of the temperature, `[]`.
      entropy: The entropies, or samples `-log_prob`, of any shape.
      target_entropy: The entropy to reach, `[]`.
      use_log_alpha: Whether `c` is `log_alpha`.

    Raises:
      ValueError: `log_alpha` or `target_entropy` is not a scalar.
    """
    check_scalars(log_alpha=log_alpha, target_entropy=target_entropy)
    factor = log_alpha if use_log_alpha else tf.exp(log_alpha)
    entropy = tf.convert_to_tensor(entropy)
    return factor * tf.stop_gradient(entropy - target_entropy)


def minimum_of_subset(
    q: types.TensorLike, noise: types.TensorLike, size: int
) -> tf.Tensor:
    """Returns the minimum over a random subset of critics, `[...]`.

    Chen et al. 2021, algorithm 1, line 8.

    Args:
      q: The values of `N` critics, `[N, ...]`.
      noise: `N` independent uniform numbers. The critics with the largest numbers form
        the subset.
      size: The size of the subset, from 1 to `N`.

    Raises:
      ValueError: There is not one number for each critic.
    """
    q = tf.convert_to_tensor(q)
    check_same_shape(critics_of_q=q.shape[:1], noise=noise)
    return tf.reduce_min(tf.gather(q, tf.math.top_k(noise, size).indices), axis=0)


def truncated_mixture(quantiles: types.TensorLike, num_dropped: int) -> tf.Tensor:
    """Returns the lowest quantiles of the mixture of all critics, in rising order.

    Kuznetsov et al. 2020, equation 8.

    Args:
      quantiles: The `M` quantiles of each of `N` critics, `[N, B, M]`.
      num_dropped: The number of quantiles to leave out for each critic, 0 to `M - 1`;
        the `N * num_dropped` largest quantiles of the mixture are dropped.

    Returns:
      `[B, N * (M - num_dropped)]`.

    Raises:
      ValueError: The rank is wrong.
    """
    quantiles = tf.convert_to_tensor(quantiles)
    check_ranks((3,), quantiles=quantiles)
    num_critics, _, num_quantiles = quantiles.shape
    mixture = tf.concat(tf.unstack(quantiles, axis=0), axis=-1)
    # If it is compiled for a CPU, tf.sort takes 1.5 times as long.
    return -tf.math.top_k(-mixture, num_critics * (num_quantiles - num_dropped)).values
