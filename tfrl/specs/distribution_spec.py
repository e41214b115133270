"""`DistributionSpec`, which makes a distribution from its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tree


class DistributionSpec:
    """Describes a distribution by a builder, its parameters and its samples."""

    def __init__(
        self,
        builder: Callable[..., Any],
        input_params_spec: Any,
        sample_spec: Any,
        **distribution_parameters: Any,
    ):
        """Creates the spec.

        Args:
          builder: A function that takes the parameters by name and returns the
            distribution.
          input_params_spec: The nest of specs of the parameters, by name. The
            parameters are only checked if the nest is a dictionary.
          sample_spec: The spec of the samples.
          **distribution_parameters: Additional arguments for every call of `builder`.
        """
        self._builder = builder
        self._input_params_spec = input_params_spec
        self._sample_spec = sample_spec
        self._distribution_parameters = distribution_parameters

    @property
    def builder(self) -> Callable[..., Any]:
        """The function that makes the distribution from its parameters by name."""
        return self._builder

    @property
    def input_params_spec(self) -> Any:
        """The nest of specs of the parameters."""
        return self._input_params_spec

    @property
    def sample_spec(self) -> Any:
        """The spec of the samples."""
        return self._sample_spec

    @property
    def distribution_parameters(self) -> dict[str, Any]:
        """Additional arguments for every call of `builder`."""
        return self._distribution_parameters

    def build_distribution(self, **distribution_parameters: Any) -> Any:
        """Makes a distribution.

        Raises:
          ValueError: If the parameters do not have the structure of their specs.
        """
        specs = self._input_params_spec
        if isinstance(specs, Mapping):
            given = {name: distribution_parameters.get(name) for name in specs}
            tf.nest.assert_same_structure(given, specs)
        return self._builder(
            **{**self._distribution_parameters, **distribution_parameters}
        )

    def __repr__(self) -> str:
        return (
            f"DistributionSpec(builder={self.builder}, "
            f"input_params_spec={self.input_params_spec!r}, "
            f"sample_spec={self.sample_spec!r})"
        )


def deterministic_distribution_from_spec(spec: Any) -> DistributionSpec:
    """Returns the spec of `Deterministic` distributions with samples of `spec`."""
    import tensorflow_probability as tfp

    return DistributionSpec(
        tfp.distributions.Deterministic, {"loc": spec}, sample_spec=spec
    )


def nested_distributions_from_specs(specs: Any, parameters: Any) -> Any:
    """Makes the nest of distributions that a nest of `DistributionSpec`s describes.

    Args:
      specs: The nest of `DistributionSpec`s.
      parameters: A nest of the same structure, whose leaves are dictionaries from
        names of parameters to tensors.

    Raises:
      ValueError: If the structures differ.
    """
    return tree.map_structure_up_to(
        specs,
        lambda spec, arguments: spec.build_distribution(**arguments),
        specs,
        parameters,
        check_types=False,
    )
