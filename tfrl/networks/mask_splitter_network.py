"""MaskSplitterNetwork: separates the action mask from the observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.networks import network
from tfrl.typing import types
from tfrl.utils import nest_utils


class MaskSplitterNetwork(network.DistributionNetwork):
    """Splits an observation into the network's input and the mask of valid actions.

    The wrapped network is applied to its part of the observation. With
    `passthrough_mask` its `call` gets the mask as the argument `mask`; otherwise the
    mask is dropped. The output and the state come from the wrapped network.
    """

    def __init__(
        self,
        splitter_fn: Callable[[Any], tuple[Any, Any]],
        wrapped_network: network.Network,
        passthrough_mask: bool = False,
        input_tensor_spec: types.NestedTensorSpec | None = None,
        name: str | None = "MaskSplitterNetwork",
    ):
        """Wraps a network.

        Args:
          splitter_fn: A function from an observation (or its specs) to the pair of the
            network's input and the mask, `[B, num_actions]`.
          wrapped_network: The network to wrap.
          passthrough_mask: Whether the wrapped network takes the mask.
          input_tensor_spec: The nest of specs of the observations, with their masks.
          name: The network's name.

        Raises:
          ValueError: If the specs do not fit the specs of the wrapped network.
        """
        if input_tensor_spec is not None:
            _check_input_spec(splitter_fn, input_tensor_spec, wrapped_network)
        super().__init__(
            input_tensor_spec=input_tensor_spec,
            state_spec=wrapped_network.state_spec,
            output_spec=getattr(wrapped_network, "output_spec", None),
            name=name,
        )
        self._splitter_fn = splitter_fn
        self._wrapped_network = wrapped_network
        self._passthrough_mask = passthrough_mask

    @property
    def wrapped_network(self) -> network.Network:
        """The network that takes the observation without its mask."""
        return self._wrapped_network

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        """Returns the wrapped network's output and new state."""
        observation, mask = self._splitter_fn(observation)
        if self._passthrough_mask:
            kwargs["mask"] = mask
        result: tuple[Any, Any] = self._wrapped_network(
            observation,
            step_type=step_type,
            network_state=network_state,
            training=training,
            **kwargs,
        )
        return result

    def create_variables(self, input_tensor_spec: Any = None, **kwargs: Any) -> Any:
        """Makes the variables; returns the output spec.

        If specs of masked observations are given neither here nor in the constructor,
        only the wrapped network is applied, with its own specs.

        Raises:
          ValueError: If neither network knows its specs.
        """
        if input_tensor_spec is None and self.input_tensor_spec is None:
            output_spec = self._wrapped_network.create_variables(**kwargs)
            self.build()
            return output_spec
        return super().create_variables(input_tensor_spec, **kwargs)

    def _layer_arguments(self) -> dict[str, Any]:
        return {"wrapped_network": self._wrapped_network}


def _check_input_spec(
    splitter_fn: Callable[[Any], tuple[Any, Any]],
    input_tensor_spec: Any,
    wrapped_network: network.Network,
) -> None:
    expected = wrapped_network.input_tensor_spec
    if expected is None:
        return
    given, _ = splitter_fn(input_tensor_spec)
    try:
        nest_utils.flatten_and_check_shape_nested_specs(given, expected)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"input_tensor_spec: splitter_fn gives the network {given}, expected "
            f"{expected} as {wrapped_network.name} takes it; build that network with "
            f"the part of the observation spec that it sees ({error})."
        ) from error
