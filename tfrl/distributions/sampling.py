"""Samples of distributions as pure functions of a stateless seed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.compilation import replicas
from tfrl.utils.random_numbers import seeds


def sample(distribution: Any, seed: tf.Tensor) -> tf.Tensor:
    """Draws one sample for each distribution of the batch.

    A categorical distribution needs one uniform number for each sample, which is looked
    up among the cumulative probabilities (Devroye, "Non-Uniform Random Variate
    Generation", 1986, section III.2). A `Normal` or `MultivariateNormalDiag`, even if
    it is squashed to a spec, and an `Independent` of a `Normal` whose last dimension is
    the event, are reparameterized: `loc + scale * seeds.normal(...)`. The samples are
    the same whether or not XLA compiles the graph, except for rounding, and where a
    number falls on the edge between two values. All other distributions use TFP's own
    sampling, whose samples may differ with XLA.

    Args:
      distribution: A TFP distribution.
      seed: An integer tensor `[2]`.
    """
    import tensorflow_probability as tfp

    from tfrl.distributions import discrete_valued, masked, shifted_categorical

    kind, dtype = type(distribution), distribution.dtype
    if kind in (tfp.distributions.Categorical, masked.MaskedCategorical):
        return _categorical(distribution.logits_parameter(), seed, dtype)
    if kind is shifted_categorical.ShiftedCategorical:
        index = _categorical(distribution.logits_parameter(), seed, dtype)
        return index + tf.cast(distribution.shift, dtype)
    if kind is discrete_valued.DiscreteValuedDistribution:
        logits = distribution.logits_parameter()
        return distribution.at(_categorical(logits, seed, tf.int32))
    normal = _normal_of(distribution)
    if normal is not None:
        return squash(normal.draw(seed)[0], distribution)
    # TFP takes stateless seeds as int32.
    seed = replicas.seed_of_replica(seed)
    return distribution.sample(seed=tf.cast(seed, tf.int32))


def sample_and_log_prob(
    distribution: Any, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws reparameterized samples and returns them with their log densities.

    `sample` draws the same numbers. The density of a squashed sample is computed from
    the number before the squashing, by

        log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)),

    so the density and its gradients are right even where `tanh(x)` is rounded to 1.
    TFP's `log_prob(sample)` has to invert the rounded sample instead.

    Args:
      distribution: A TFP distribution.
      seed: An integer tensor `[2]`.

    Returns:
      The samples, and the log densities `distribution.batch_shape`.

    Raises:
      ValueError: The distribution is not reparameterized.
    """
    normal = _normal_of(distribution)
    if normal is None:
        from tfrl.distributions import reparameterized_sampling

        seed = replicas.seed_of_replica(seed)
        value = reparameterized_sampling.sample(
            distribution, reparam=True, seed=tf.cast(seed, tf.int32)
        )
        return value, distribution.log_prob(value)
    x, log_density = normal.draw(seed)
    value = squash(x, distribution)
    if value is not x:
        magnitude = tf.cast(distribution.action_magnitudes, x.dtype)
        slope = 2 * (math.log(2) - x - tf.nn.softplus(-2 * x))
        log_density -= tf.math.log(magnitude) + slope
    if normal.is_vector:
        log_density = tf.reduce_sum(log_density, axis=-1)
    return value, log_density


class _DiagonalNormal(NamedTuple):
    """Independent normal numbers; the last axis is one event if `is_vector`."""

    loc: tf.Tensor
    scale: tf.Tensor
    is_vector: bool

    def draw(self, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns numbers and the logarithm of the density of each of them."""
        shape = tf.broadcast_static_shape(self.loc.shape, self.scale.shape)
        if not shape.is_fully_defined():
            shape = tf.broadcast_dynamic_shape(tf.shape(self.loc), tf.shape(self.scale))
        noise = seeds.normal(seed, shape, self.loc.dtype)
        log_density = (
            -0.5 * tf.square(noise)
            - tf.math.log(self.scale)
            - 0.5 * math.log(2 * math.pi)
        )
        return self.loc + self.scale * noise, log_density


def _normal_of(distribution: Any) -> _DiagonalNormal | None:
    """Returns the normal distribution from which samples are computed, or None."""
    import tensorflow_probability as tfp

    from tfrl.distributions import squash_to_spec, state_dependent_normal

    if type(distribution) is squash_to_spec.SquashToSpecNormal:
        distribution = distribution.input_distribution
    if type(distribution) is tfp.distributions.Normal:
        loc, scale = map(tf.convert_to_tensor, (distribution.loc, distribution.scale))
        return _DiagonalNormal(loc, scale, is_vector=False)
    if type(distribution) is tfp.distributions.Independent:
        inner = distribution.distribution
        num_dims = tf.get_static_value(distribution.reinterpreted_batch_ndims)
        if type(inner) is not tfp.distributions.Normal or num_dims != 1:
            return None
        loc, scale = map(tf.convert_to_tensor, (inner.loc, inner.scale))
        return _DiagonalNormal(loc, scale, is_vector=True)
    if type(distribution) in (
        tfp.distributions.MultivariateNormalDiag,
        state_dependent_normal.StateDependentNormal,
    ):
        return _DiagonalNormal(
            distribution.mean(), distribution.stddev(), is_vector=True
        )
    return None


def squash(x: tf.Tensor, distribution: Any) -> tf.Tensor:
    """Squashes normal numbers `x` to the bounds, if `distribution` does so.

    Args:
      x: Samples of the normal distribution that `distribution` is or squashes.
      distribution: A TFP distribution.
    """
    from tfrl.distributions import squash_to_spec

    if type(distribution) is not squash_to_spec.SquashToSpecNormal:
        return x
    means, magnitudes = (
        tf.cast(bound, x.dtype)
        for bound in (distribution.action_means, distribution.action_magnitudes)
    )
    return means + magnitudes * tf.tanh(x)


def _categorical(logits: tf.Tensor, seed: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws values `[...]` of `dtype` for logits `[..., K]`."""
    outer = logits.shape[:-1]
    shape = (
        [*outer, 1]
        if outer.is_fully_defined()
        else tf.concat([tf.shape(logits)[:-1], [1]], axis=0)
    )
    cumulated = tf.cumsum(tf.nn.softmax(logits), axis=-1)
    # Rounding may leave the last cumulative probability above or below 1. The uniform
    # number is scaled by this last probability, so that it stays below it.
    number = tf.cast(seeds.uniform(seed, shape), logits.dtype) * cumulated[..., -1:]
    return tf.reduce_sum(tf.cast(cumulated <= number, dtype), axis=-1)
