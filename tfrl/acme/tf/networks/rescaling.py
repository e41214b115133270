"""Layers that map actions into the bounds of their spec."""

from __future__ import annotations

from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from tfrl.acme.tf.networks import stochastic
from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer
from tfrl.specs import tensor_spec
from tfrl.utils import actions


class _SpecLayer(recorded_layer.RecordedLayer):
    """Base class: writes its spec into the configuration as numbers."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        spec = tensor_spec.from_spec(self._arguments["spec"])
        numbers = {
            "shape": spec.shape.as_list(),
            "dtype": spec.dtype.name,
            "minimum": spec.minimum.tolist(),
            "maximum": spec.maximum.tolist(),
        }
        return {**super().get_config(), "spec": numbers}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a layer from the result of `get_config`."""
        spec = tensor_spec.BoundedTensorSpec(**config["spec"])
        return super().from_config({**config, "spec": spec})


@keras.saving.register_keras_serializable("tfrl")
class ClipToSpec(_SpecLayer):
    """Clips its inputs to the bounds of a spec."""

    def __init__(self, spec: Any, **kwargs: Any):
        """Creates the layer.

        Args:
          spec: A spec with `minimum` and `maximum`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._set_untracked("_spec", spec)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the clipped inputs, `[..., *spec.shape]`."""
        return actions.clip_to_spec(inputs, self._spec)


@keras.saving.register_keras_serializable("tfrl")
class RescaleToSpec(_SpecLayer):
    """Maps inputs in [-1, 1] linearly to the bounds of a spec."""

    def __init__(self, spec: Any, **kwargs: Any):
        """Creates the layer.

        Args:
          spec: A spec with finite `minimum` and `maximum`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If a bound is infinite.
        """
        super().__init__(**kwargs)
        self._set_untracked("_range", _range(spec))

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the scaled inputs, `[..., *spec.shape]`."""
        middle, half_width = self._range
        return middle + half_width * inputs


@keras.saving.register_keras_serializable("tfrl")
class TanhToSpec(_SpecLayer, stochastic.DistributionLayer):
    """Squashes tensors or distributions into the bounds of a spec with `tanh`.

    A `Normal` or `MultivariateNormalDiag` becomes a `SquashToSpecNormal`, whose mode is
    the squashed mode; another distribution becomes a `TransformedDistribution`.
    """

    def __init__(self, spec: Any, **kwargs: Any):
        """Creates the layer.

        Args:
          spec: A spec with finite `minimum` and `maximum`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If a bound is infinite.
        """
        super().__init__(**kwargs)
        self._set_untracked("_spec", tensor_spec.from_spec(spec))
        self._set_untracked("_range", _range(spec))

    def call(self, inputs: Any) -> Any:
        """Returns the squashed tensor `[..., *spec.shape]`, or distribution."""
        middle, half_width = self._range
        if not utils.is_distribution(inputs):
            return middle + half_width * tf.tanh(inputs)
        import tensorflow_probability as tfp

        from tfrl.distributions import squash_to_spec, tanh_bijector_stable

        normals = (tfp.distributions.Normal, tfp.distributions.MultivariateNormalDiag)
        if isinstance(inputs, normals):
            return squash_to_spec.SquashToSpecNormal(inputs, self._spec)
        bijectors = [
            tfp.bijectors.Shift(tf.cast(middle, inputs.dtype)),
            tfp.bijectors.Scale(tf.cast(half_width, inputs.dtype)),
            tanh_bijector_stable.Tanh(),
        ]
        return tfp.distributions.TransformedDistribution(
            inputs, tfp.bijectors.Chain(bijectors)
        )


def _range(spec: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns the middle and the half-width of a spec."""
    if not actions.has_finite_range(tensor_spec.from_spec(spec)):
        raise ValueError(
            f"spec: got bounds [{spec.minimum}, {spec.maximum}], expected finite ones; "
            "use ClipToSpec, or a spec with bounds."
        )
    middle, half_width = actions.spec_means_and_magnitudes(spec)
    return middle, half_width
