"""Sampling that can require a reparameterized distribution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def sample(distribution: Any, reparam: bool = False, **kwargs: Any) -> tf.Tensor:
    """Draws from `distribution`.

    Args:
      distribution: A TFP distribution.
      reparam: Whether gradients have to flow through the sample.
      **kwargs: Arguments of `distribution.sample`: `sample_shape`, `seed`.

    Raises:
      ValueError: If `reparam` is True and the distribution is not reparameterized.
    """
    if reparam:
        import tensorflow_probability as tfp

        kind = distribution.reparameterization_type
        if kind != tfp.distributions.FULLY_REPARAMETERIZED:
            raise ValueError(
                f"distribution: got {distribution} with {kind}, expected a fully "
                "reparameterized one: This distribution cannot be reparameterized; "
                "sample with reparam=False."
            )
    return distribution.sample(**kwargs)
