"""NormalProjectionNetwork: maps a hidden state to a distribution of actions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from tfrl.keras_layers import bias_layer
from tfrl.networks import network, utils
from tfrl.networks.construction import seeding
from tfrl.specs import distribution_spec, matching
from tfrl.typing import types
from tfrl.utils import actions


def tanh_squash_to_spec(inputs: tf.Tensor, spec: Any) -> tf.Tensor:
    """Maps real numbers into the bounds of `spec` by a scaled and shifted tanh.

    Returns `inputs` unchanged if the range of `spec` is not finite.
    """
    if not actions.has_finite_range(spec):
        return inputs
    means = (spec.maximum + spec.minimum) / 2.0
    magnitudes = (spec.maximum - spec.minimum) / 2.0
    return means + magnitudes * tf.tanh(inputs)


class GaussianProjectionNetwork(network.DistributionNetwork):
    """Base class of the heads that predict a normal distribution of actions.

    A subclass makes its layers, and computes means and standard deviations in
    `_moments`.
    """

    def __init__(
        self,
        sample_spec: types.TensorSpec,
        output_spec: distribution_spec.DistributionSpec,
        name: str | None,
    ):
        """Creates the network.

        Args:
          sample_spec: The float spec of the actions; see `check_sample_spec`.
          output_spec: The spec of the distribution, such as `normal_distribution_spec`.
          name: The network's name.
        """
        super().__init__(
            input_tensor_spec=None, state_spec=(), output_spec=output_spec, name=name
        )
        self._set_untracked("_sample_spec", sample_spec)

    def _moments(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns means and deviations `[B, A]`, or in the shape of actions."""
        raise NotImplementedError

    def _distribution(self, loc: tf.Tensor, scale: tf.Tensor, inputs: tf.Tensor) -> Any:
        """Returns the distribution for moments in the shape of actions."""
        del inputs
        return self.output_spec.build_distribution(loc=loc, scale=scale)

    def _in_shape(self, x: tf.Tensor) -> tf.Tensor:
        """Returns numbers `[B, A]` in the shape of actions."""
        shape = self._sample_spec.shape
        return x if x.shape[1:] == shape else tf.reshape(x, [-1, *shape])

    @override
    def call(
        self,
        inputs: tf.Tensor,
        outer_rank: int = 1,
        training: bool = False,
        mask: tf.Tensor | None = None,
    ) -> tuple[Any, tuple[()]]:
        """Returns the distribution, and `()` as the state.

        Args:
          inputs: The hidden state, `outer_shape + [n]`.
          outer_rank: The number of outer dimensions of `inputs`.
          training: Not used.
          mask: Must be None.

        Raises:
          ValueError: If `inputs` do not have the dtype of the actions.
          NotImplementedError: If there is a mask.
        """
        spec = self._sample_spec
        check_inputs(inputs, mask, spec, self)
        squash = utils.BatchSquash(outer_rank)
        loc, scale = (
            squash.unflatten(tf.cast(self._in_shape(x), spec.dtype))
            for x in self._moments(utils.flatten_inner(squash.flatten(inputs)))
        )
        return self._distribution(loc, scale, inputs), ()


class NormalProjectionNetwork(GaussianProjectionNetwork):
    """Predicts a `MultivariateNormalDiag`, or a `Normal` where actions are scalars.

    By default the mean is squashed into the bounds of the spec and the standard
    deviations are variables that do not depend on the input.
    """

    def __init__(
        self,
        sample_spec: types.TensorSpec,
        activation_fn: utils.Activation = None,
        init_means_output_factor: float = 0.1,
        std_bias_initializer_value: float = 0.0,
        mean_transform: Callable[[tf.Tensor, Any], tf.Tensor] | None = (
            tanh_squash_to_spec
        ),
        std_transform: Callable[[tf.Tensor], tf.Tensor] | None = tf.nn.softplus,
        state_dependent_std: bool = False,
        scale_distribution: bool = False,
        seed: int | None = None,
        seed_stream_class: Any = None,
        name: str | None = "NormalProjectionNetwork",
        *,
        kernel_initializer: Any = None,
    ):
        """Makes the layers that compute the means and standard deviations.

        Args:
          sample_spec: The float spec of the actions. Without a finite range, means are
            not squashed.
          activation_fn: The activation of both layers.
          init_means_output_factor: The scale of the kernels' `VarianceScaling`.
          std_bias_initializer_value: The initial bias of the standard deviations,
            before `std_transform`.
          mean_transform: A function from `(means, sample_spec)` to the means; None
            applies no function.
          std_transform: A function from biases or outputs to standard deviations; None
            applies no function.
          state_dependent_std: Whether standard deviations depend on the input.
          scale_distribution: Whether samples are squashed into the bounds, not only
            means: the distribution is then a `SquashToSpecNormal` and `mean_transform`
            is not applied.
          seed: Seeds the kernels; None follows `tf.random.set_seed`.
          seed_stream_class: A class like `tfp.util.SeedStream` that draws the kernels'
            seeds; by default this package's `SeedStream`.
          name: The network's name.
          kernel_initializer: The initialiser of the kernels, instead of the
            `VarianceScaling`.

        Raises:
          ValueError: If `sample_spec` is not one spec of floats, or has no finite range
            with `scale_distribution`.
        """
        check_sample_spec(sample_spec, "Normal")
        super().__init__(
            sample_spec, normal_distribution_spec(sample_spec, scale_distribution), name
        )
        self._mean_transform = None if scale_distribution else mean_transform
        self._std_transform = std_transform
        num_actions = int(np.prod(sample_spec.shape))
        seeds = seeding.stream_of(seed_stream_class, seed, "normal_projection_network")

        def dense(name: str, bias: float) -> keras.layers.Layer:
            return keras.layers.Dense(
                num_actions,
                activation=activation_fn,
                kernel_initializer=seeding.clone_initializer(
                    kernel_initializer
                    or keras.initializers.VarianceScaling(init_means_output_factor),
                    seeds(),
                ),
                bias_initializer=keras.initializers.Constant(bias),
                name=name,
            )

        self._means_layer = dense("means_projection_layer", 0.0)
        self._state_dependent_std = state_dependent_std
        if state_dependent_std:
            self._stds_layer = dense(
                "stddev_projection_layer", std_bias_initializer_value
            )
        else:
            self._stds_layer = bias_layer.BiasLayer(
                keras.initializers.Constant(std_bias_initializer_value)
            )

    @override
    def _moments(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        means = self._means_layer(hidden)
        stds = self._stds_layer(
            hidden if self._state_dependent_std else tf.zeros_like(means)
        )
        means, stds = self._in_shape(means), self._in_shape(stds)
        if self._mean_transform is not None:
            means = self._mean_transform(means, self._sample_spec)
        if self._std_transform is not None:
            stds = self._std_transform(stds)
        return means, stds


def check_sample_spec(spec: Any, kind: str) -> None:
    """Raises a ValueError unless `spec` is one spec of floats, with elements."""
    if len(tf.nest.flatten(spec)) != 1:
        raise ValueError(
            f"sample_spec: got the nest {spec}, expected one spec: {kind} Projection "
            "network only supports single spec samples; make one for each."
        )
    matching.check_not_empty(spec, "sample_spec")
    if not spec.dtype.is_floating:
        raise ValueError(
            f"sample_spec: got {spec}, expected a floating dtype; use a "
            "CategoricalProjectionNetwork for discrete actions."
        )


def check_inputs(
    inputs: tf.Tensor, mask: Any, spec: Any, projection: network.Network
) -> None:
    """Raises an error if there is a mask, or the inputs do not have `spec`'s dtype."""
    if mask is not None:
        raise NotImplementedError(
            f"{projection.name}: got an action mask {mask}, expected None; continuous "
            "actions have no mask: drop the constraint splitter."
        )
    if inputs.dtype != spec.dtype:
        raise ValueError(
            f"{projection.name}: inputs have dtype {inputs.dtype.name}, expected "
            f"{spec.dtype.name}: Inputs to {type(projection).__name__} must match the "
            "sample_spec.dtype; give the network the dtype of the actions, or wrap the "
            "environment in environments.wrappers.Float32ActionsWrapper."
        )


def normal_distribution_spec(
    spec: Any,
    scale_distribution: bool,
    build_normal: Callable[..., Any] | None = None,
) -> distribution_spec.DistributionSpec:
    """Returns the distribution spec of a normal over samples of `spec`.

    Args:
      spec: The spec of the samples; scalars give a `Normal`, others a
        `MultivariateNormalDiag`.
      scale_distribution: Whether samples are squashed into the bounds.
      build_normal: A function from `loc`, `scale` and further parameters to another
        normal distribution than these two.

    Raises:
      ValueError: If samples are to be squashed into bounds that are not finite.
    """
    if scale_distribution and not actions.has_finite_range(spec):
        raise ValueError(
            f"sample_spec: got {spec}, expected a finite minimum and maximum, into "
            "which samples are squashed; give the actions bounds, or use a "
            "NormalProjectionNetwork without scale_distribution."
        )

    def build(**parameters: Any) -> Any:
        distribution = (build_normal or functools.partial(_normal, spec))(**parameters)
        if not scale_distribution:
            return distribution
        from tfrl.distributions import squash_to_spec

        return squash_to_spec.SquashToSpecNormal(distribution, spec)

    parameter = tf.TensorSpec(spec.shape, spec.dtype)
    return distribution_spec.DistributionSpec(
        build, {"loc": parameter, "scale": parameter}, sample_spec=spec
    )


def _normal(spec: Any, loc: tf.Tensor, scale: tf.Tensor) -> Any:
    import tensorflow_probability as tfp

    if spec.shape.rank == 0:
        return tfp.distributions.Normal(loc=loc, scale=scale)
    return tfp.distributions.MultivariateNormalDiag(loc=loc, scale_diag=scale)
