"""Heads that return distributions: normal distributions and C51's returns."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.networks import initializers, recorded_layer


@keras.saving.register_keras_serializable("tfrl")
class DiscreteValuedHead(recorded_layer.RecordedLayer):
    """Returns distributions over `num_atoms` evenly spaced values, as C51 does.

    See Bellemare et al., "A distributional perspective on reinforcement learning",
    2017. The output is a `DiscreteValuedDistribution` of batch shape `[..., *S]`, where
    `S` is the shape of the bounds: `[]` for one value function.
    """

    def __init__(
        self,
        vmin: Any,
        vmax: Any,
        num_atoms: int,
        w_init: Any = None,
        b_init: Any = "zeros",
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          vmin: The smallest value, a number or an array of shape `S`.
          vmax: The largest value, of the same shape.
          num_atoms: The number of values, at least 2.
          w_init: The initialiser of the kernel; by default `initializers.truncated`.
          b_init: The initialiser of the bias.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If there are fewer than two atoms, or `vmin` is not below `vmax`.
        """
        super().__init__(**kwargs)
        low, high = np.asarray(vmin, np.float32), np.asarray(vmax, np.float32)
        if num_atoms < 2:
            raise ValueError(
                f"num_atoms: got {num_atoms}, expected at least 2, one for each bound; "
                "C51 has 51."
            )
        if low.shape != high.shape or np.any(low >= high):
            raise ValueError(
                f"vmin, vmax: got {vmin} and {vmax}, expected two numbers or two "
                "arrays of one shape, vmin below vmax; swap or widen them."
            )
        self._values = np.linspace(low, high, num_atoms, axis=-1, dtype=np.float32)
        self._logits_layer = keras.layers.Dense(
            self._values.size,
            kernel_initializer=w_init or initializers.truncated(),
            bias_initializer=b_init,
            name="logits",
        )

    @property
    def values(self) -> np.ndarray:
        """The values, float32 `[*S, num_atoms]`."""
        return self._values

    def call(self, inputs: tf.Tensor) -> Any:
        """Returns the distribution for embeddings `[..., n]`."""
        from tfrl.distributions import discrete_valued

        logits = self._logits_layer(inputs)
        if self._values.ndim > 1:
            outer = tf.shape(logits)[:-1]
            logits = tf.reshape(logits, tf.concat([outer, self._values.shape], axis=0))
        values = tf.constant(self._values, logits.dtype)
        return discrete_valued.DiscreteValuedDistribution(values, logits)


@keras.saving.register_keras_serializable("tfrl")
class MultivariateNormalDiagHead(recorded_layer.RecordedLayer):
    """Returns normal distributions with a diagonal covariance, as MPO's policies do.

    The standard deviation is `softplus(x) init_scale / softplus(0) + min_scale` with a
    linear function `x` of the input that is near 0 at the start.
    """

    def __init__(
        self,
        num_dimensions: int,
        init_scale: float = 0.3,
        min_scale: float = 1e-6,
        tanh_mean: bool = False,
        fixed_scale: bool = False,
        use_tfd_independent: bool = False,
        w_init: Any = None,
        b_init: Any = "zeros",
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_dimensions: The number of dimensions of a sample.
          init_scale: The standard deviation at the start.
          min_scale: The smallest standard deviation.
          tanh_mean: Whether `tanh` maps the mean into [-1, 1].
          fixed_scale: Whether the standard deviation stays `init_scale`.
          use_tfd_independent: Whether to return an `Independent` of `Normal`s in place
            of a `MultivariateNormalDiag`. MPO's losses per dimension need it.
          w_init: The initialiser of the kernels; by default
            `initializers.near_zero(1e-4)`.
          b_init: The initialiser of the biases.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._init_scale = init_scale
        self._min_scale = min_scale
        self._tanh_mean = tanh_mean
        self._is_independent = use_tfd_independent
        kernels = initializers.copies(w_init or initializers.near_zero(1e-4), 2)
        biases = initializers.copies(b_init, 2)
        self._mean_layer, self._scale_layer = (
            keras.layers.Dense(
                num_dimensions,
                kernel_initializer=kernel,
                bias_initializer=bias,
                name=name,
            )
            for kernel, bias, name in zip(
                kernels, biases, ("mean", "scale"), strict=True
            )
        )
        if fixed_scale:
            self._scale_layer = None

    def call(self, inputs: tf.Tensor) -> Any:
        """Returns the distribution for embeddings `[..., n]`."""
        import tensorflow_probability as tfp

        mean = self._mean_layer(inputs)
        if self._tanh_mean:
            mean = tf.tanh(mean)
        if self._scale_layer is None:
            scale = tf.fill(tf.shape(mean), tf.constant(self._init_scale, mean.dtype))
            scale = tf.ensure_shape(scale, mean.shape)
        else:
            scale = tf.nn.softplus(self._scale_layer(inputs))
            scale *= self._init_scale / math.log(2)
            scale += self._min_scale
        if self._is_independent:
            return tfp.distributions.Independent(
                tfp.distributions.Normal(loc=mean, scale=scale),
                reinterpreted_batch_ndims=1,
            )
        return tfp.distributions.MultivariateNormalDiag(loc=mean, scale_diag=scale)
