"""Heads that return distributions: normal distributions and C51's returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense, initializers
from tfrl.utils import number_checks

# The smallest standard deviation of a mixture's component.
_MIN_SCALE = 1e-4


@keras.saving.register_keras_serializable("tfrl")
class DiscreteValuedHead(recorded_layer.RecordedLayer):
    """Returns distributions over `num_atoms` evenly spaced values, as C51 does.

    See Bellemare et al., "A distributional perspective on reinforcement learning",
    2017. The output is a `DiscreteValuedDistribution` of events of shape `S`, the shape
    of the bounds: `[]` for one value function.
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
          vmin: The smallest value, a number or an array.
          vmax: The largest value; the shapes of `vmin` and `vmax` broadcast to `S`.
          num_atoms: The number of values, at least 2.
          w_init: The initialiser of the kernel; by default `initializers.truncated`.
          b_init: The initialiser of the bias.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If there are fewer than two atoms, `vmin` is not below `vmax`, or
            their shapes do not broadcast.
        """
        super().__init__(**kwargs)
        number_checks.check_integer(
            "num_atoms", num_atoms, 2, remedy="each bound is an atom, and C51 has 51"
        )
        low, high = np.asarray(vmin, np.float32), np.asarray(vmax, np.float32)
        try:
            low, high = np.broadcast_arrays(low, high)
            fits = bool(np.all(low < high))
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"vmin, vmax: got {vmin} and {vmax}, expected two numbers or arrays "
                "whose shapes broadcast, vmin below vmax; swap or widen them."
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
        logits = _split_last(logits, self._values.shape)
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
          use_tfd_independent: Whether to return an `Independent` of `Normal`s instead
            of a `MultivariateNormalDiag`. MPO's losses per dimension need it.
          w_init: The initialiser of the kernels; by default
            `initializers.near_zero(1e-4)`.
          b_init: The initialiser of the biases.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: A scale is negative or not finite.
          TypeError: A scale is not a number.
        """
        super().__init__(**kwargs)
        for name, scale in (("init_scale", init_scale), ("min_scale", min_scale)):
            number_checks.check_number(
                name, scale, 0.0, remedy="0.3 and 1e-6 are the defaults"
            )
        self._init_scale = init_scale
        self._min_scale = min_scale
        self._tanh_mean = tanh_mean
        self._is_independent = use_tfd_independent
        kernels = initializers.copies(w_init or initializers.near_zero(1e-4), 2)
        biases = initializers.copies(b_init, 2)
        self._mean_layer, self._scale_layer = (
            keras.layers.Dense(
                utils.units(num_dimensions),
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
            scale = self._init_scale * tf.ones_like(mean)
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


@keras.saving.register_keras_serializable("tfrl")
class CategoricalHead(recorded_layer.RecordedLayer):
    """Returns categorical distributions of independent discrete actions."""

    def __init__(
        self,
        num_values: int | Sequence[int],
        dtype: Any = None,
        w_init: Any = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_values: The number of values; or the shape of the logits `[*S, K]`, for
            actions of shape `S` with K values each.
          dtype: The layer's dtype, as for every Keras layer; samples are int32.
          w_init: The initialiser of the kernel; by default `initializers.truncated`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(dtype=dtype, **kwargs)
        self._logits_shape = tuple(np.atleast_1d(num_values).tolist())
        (self._logits_layer,) = dense.layers([math.prod(self._logits_shape)], w_init)

    def call(self, inputs: tf.Tensor) -> Any:
        """Returns a `Categorical`, `[..., *S]`, for embeddings `[..., n]`."""
        import tensorflow_probability as tfp

        logits = _split_last(self._logits_layer(inputs), self._logits_shape)
        return tfp.distributions.Categorical(logits=logits)


class _GaussianMixture(recorded_layer.RecordedLayer):
    """Base class of heads that return mixtures of normal distributions."""

    def __init__(
        self,
        num_dimensions: int,
        num_components: int,
        num_logits: int,
        init_scale: float | None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self._num_dimensions = num_dimensions
        self._num_components = num_components
        self._scale_factor = 1.0 if init_scale is None else init_scale / math.log(2)
        sizes = [num_logits, *[num_dimensions * num_components] * 2]
        self._layers_of_parameters = [
            dense.layers([size], initializers.near_zero(1e-5))[0] for size in sizes
        ]

    def _parameters(
        self, inputs: tf.Tensor, is_low_noise: bool
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns flat logits, means and standard deviations, `[..., n]` each."""
        logits, loc, scale = (layer(inputs) for layer in self._layers_of_parameters)
        if is_low_noise:
            return logits, loc, _MIN_SCALE * tf.ones_like(loc)
        return logits, loc, self._scale_factor * tf.nn.softplus(scale) + _MIN_SCALE


@keras.saving.register_keras_serializable("tfrl")
class UnivariateGaussianMixture(_GaussianMixture):
    """Returns independent mixtures of normal distributions, one for each dimension.

    At the start all components have means near 0 and about the same weight.
    """

    def __init__(
        self,
        num_dimensions: int,
        num_components: int = 5,
        init_scale: float | None = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_dimensions: The number of dimensions of a sample.
          num_components: The number of components of each mixture.
          init_scale: The standard deviation of each component at the start; by default
            `softplus(0)`, 0.693.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(
            num_dimensions,
            num_components,
            num_dimensions * num_components,
            init_scale,
            **kwargs,
        )

    def call(self, inputs: tf.Tensor, low_noise_policy: bool = False) -> Any:
        """Returns the distribution of events `[num_dimensions]`.

        Args:
          inputs: The embeddings, `[..., n]`.
          low_noise_policy: Whether all standard deviations are 1e-4.
        """
        import tensorflow_probability as tfp

        shape = (self._num_dimensions, self._num_components)
        logits, loc, scale = (
            _split_last(x, shape) for x in self._parameters(inputs, low_noise_policy)
        )
        mixture = tfp.distributions.MixtureSameFamily(
            tfp.distributions.Categorical(logits=logits),
            tfp.distributions.Normal(loc, scale),
        )
        return tfp.distributions.Independent(mixture, reinterpreted_batch_ndims=1)


# Acme's old name.
GaussianMixtureHead = UnivariateGaussianMixture


@keras.saving.register_keras_serializable("tfrl")
class MultivariateGaussianMixture(_GaussianMixture):
    """Returns a mixture of normal distributions with diagonal covariances."""

    def __init__(
        self,
        num_dimensions: int,
        num_components: int = 5,
        init_scale: float | None = None,
        **kwargs: Any,
    ):
        """Creates the layer; see `UnivariateGaussianMixture`.

        Args:
          num_dimensions: The number of dimensions of a sample.
          num_components: The number of components.
          init_scale: As for `UnivariateGaussianMixture`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(
            num_dimensions, num_components, num_components, init_scale, **kwargs
        )

    def call(self, inputs: tf.Tensor, low_noise_policy: bool = False) -> Any:
        """Returns the distribution of events `[num_dimensions]`.

        Args:
          inputs: The embeddings, `[..., n]`.
          low_noise_policy: Whether all standard deviations are 1e-4.
        """
        import tensorflow_probability as tfp

        logits, loc, scale = self._parameters(inputs, low_noise_policy)
        shape = (self._num_components, self._num_dimensions)
        return tfp.distributions.MixtureSameFamily(
            tfp.distributions.Categorical(logits=logits),
            tfp.distributions.MultivariateNormalDiag(
                _split_last(loc, shape), _split_last(scale, shape)
            ),
        )


def _split_last(tensor: tf.Tensor, shape: Sequence[int]) -> tf.Tensor:
    """Reshapes `[..., n]` to `[..., *shape]`."""
    if len(shape) == 1:
        return tensor
    outer = tensor.shape[:-1]
    reshaped = tf.reshape(tensor, tf.concat([tf.shape(tensor)[:-1], shape], axis=0))
    return tf.ensure_shape(reshaped, outer.concatenate(shape))
