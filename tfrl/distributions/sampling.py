"""Samples of distributions as pure functions of a stateless seed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.utils import seeds


def sample(distribution: Any, seed: tf.Tensor) -> tf.Tensor:
    """Draws one sample for each distribution of the batch.

    A categorical distribution needs one uniform number for each sample, which is looked
    up among the cumulative probabilities (Devroye, "Non-Uniform Random Variate
    Generation", 1986, section III.2). The samples do not depend on whether XLA compiles
    the graph, except if a number falls on the edge between two values. All other
    distributions use TFP's own sampling, whose samples may differ with XLA.

    Args:
      distribution: A TFP distribution.
      seed: An integer tensor `[2]`.
    """
    import tensorflow_probability as tfp

    from tfrl.distributions import masked, shifted_categorical

    kind, dtype = type(distribution), distribution.dtype
    if kind in (tfp.distributions.Categorical, masked.MaskedCategorical):
        return _categorical(distribution.logits_parameter(), seed, dtype)
    if kind is shifted_categorical.ShiftedCategorical:
        index = _categorical(distribution.logits_parameter(), seed, dtype)
        return index + tf.cast(distribution.shift, dtype)
    # TFP takes stateless seeds as int32.
    return distribution.sample(seed=tf.cast(seed, tf.int32))


def _categorical(logits: tf.Tensor, seed: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws values `[...]` of `dtype` for logits `[..., K]`."""
    outer = logits.shape[:-1]
    shape = (
        [*outer, 1]
        if outer.is_fully_defined()
        else tf.concat([tf.shape(logits)[:-1], [1]], axis=0)
    )
    cumulated = tf.cumsum(tf.nn.softmax(logits), axis=-1)
    # Rounding may leave the last cumulative probability above or below 1. Scaled by it,
    # the uniform number stays below it.
    number = tf.cast(seeds.uniform(seed, shape), logits.dtype) * cumulated[..., -1:]
    return tf.reduce_sum(tf.cast(cumulated <= number, dtype), axis=-1)
