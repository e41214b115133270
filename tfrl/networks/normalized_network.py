"""NormalizedNetwork: normalizes the observations of another network."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.networks import network
from tfrl.typing import types
from tfrl.utils import variables


class NormalizedNetwork(network.DistributionNetwork):
    """Applies a network to normalized observations.

    Networks and their copies can share a normalizer. Its statistics are among the
    network's variables, so that saved policies hold them. They are not trained, and the
    network never changes them.
    """

    def __init__(
        self,
        wrapped_network: network.Network,
        normalizer: Any,
        input_tensor_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        takes_action: bool = False,
    ):
        """Wraps a network.

        Args:
          wrapped_network: The network to wrap.
          normalizer: A `TensorNormalizer`, or another object whose
            `normalize(observation)` returns an observation of the same spec.
          input_tensor_spec: The nest of specs of the inputs; by default the
            wrapped network's.
          name: The network's name; by default the wrapped network's.
          takes_action: Whether the inputs are pairs of an observation and an action, as
            a critic's are. The actions are not normalized.
        """
        if input_tensor_spec is None:
            input_tensor_spec = wrapped_network.input_tensor_spec
        super().__init__(
            input_tensor_spec=input_tensor_spec,
            state_spec=wrapped_network.state_spec,
            output_spec=getattr(wrapped_network, "output_spec", None),
            name=name or wrapped_network.name,
        )
        self._wrapped_network = wrapped_network
        self._normalizer = normalizer
        self._takes_action = takes_action
        # The base class finds here the variables that Keras does not find.
        is_module = isinstance(normalizer, tf.Module)
        statistics = variables.tracked_variables(normalizer) if is_module else []
        self._set_untracked("_statistics", statistics)

    @property
    def wrapped_network(self) -> network.Network:
        """The network to which the normalized observations are given."""
        return self._wrapped_network

    @property
    def normalizer(self) -> Any:
        """The normalizer of the observations."""
        return self._normalizer

    @property
    def _least_outer_dims(self) -> int:
        return self._wrapped_network._least_outer_dims

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        """Returns the wrapped network's output and new state."""
        if self._takes_action:
            observation, action = inputs
            inputs = self._normalizer.normalize(observation), action
        else:
            inputs = self._normalizer.normalize(inputs)
        result: tuple[Any, Any] = self._wrapped_network(
            inputs,
            step_type=step_type,
            network_state=network_state,
            training=training,
            **kwargs,
        )
        return result

    def _layer_arguments(self) -> dict[str, Any]:
        return {"wrapped_network": self._wrapped_network}
