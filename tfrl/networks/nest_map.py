"""NestMap: one layer or network for each part of a nested observation."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.networks import network
from tfrl.networks.construction import checks, seeding
from tfrl.typing import types


class NestFlatten(keras.layers.Layer):
    """Returns its nest of inputs as a flat list, in the order of `tf.nest`.

    Put it between a `NestMap` and a layer that combines a list:

    ```python
    Sequential([
        NestMap({"image": torso, "speed": keras.layers.Dense(8)}),
        NestFlatten(),
        keras.layers.Concatenate(),
    ])
    ```
    """

    def __init__(self, **kwargs: Any):
        """Creates the layer; `kwargs` are passed to `keras.layers.Layer`."""
        super().__init__(**kwargs)
        # The tensors are returned as they are, so Keras must not cast them.
        self.autocast = False

    def call(self, inputs: Any) -> list[tf.Tensor]:
        """Returns the flat list of the tensors in `inputs`."""
        return list(tf.nest.flatten(inputs))

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """Returns None, since a list has no Keras mask."""


class NestMap(network.Network):
    """Applies a nest of layers to nested inputs, each layer to its part of the inputs.

    The nest of layers has the structure of the inputs, or a shallower structure, where
    a layer takes a sub-nest. Outputs and the state spec are packed like the layers; the
    state spec is `()` for a layer without state. The layers are not copied, so that
    weights can be shared; `copy` makes new layers.
    """

    def __init__(
        self,
        nested_layers: types.NestedLayer,
        input_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ):
        """Wraps the layers.

        Args:
          nested_layers: A nest of Keras layers and Networks.
          input_spec: The nest of specs of the observations; by default the
            layers' specs, if all layers are Networks that know them.
          name: The network's name.
          seed: Seeds the initialisers and dropouts of unbuilt layers that have no seed
            of their own; None follows `tf.random.set_seed`.

        Raises:
          TypeError: If an entry of `nested_layers` is not a Keras layer, or
            `input_spec` has another structure.
          ValueError: If there are no layers.
        """
        _check_layers(nested_layers)
        flat_layers = tree.flatten(nested_layers)
        seeds = seeding.SeedStream(seed)
        for layer in flat_layers:
            seeding.seed_layer(layer, seeds)
        flat_specs = (
            [getattr(layer, "input_tensor_spec", None) for layer in flat_layers]
            if input_spec is None
            else _flatten_up_to(
                nested_layers,
                input_spec,
                "`nested_layers` and `input_spec`",
            )
        )
        networks = [
            network.as_network(layer, spec)
            for layer, spec in zip(flat_layers, flat_specs, strict=True)
        ]
        if input_spec is None and all(spec is not None for spec in flat_specs):
            input_spec = tree.unflatten_as(nested_layers, flat_specs)
        super().__init__(
            input_tensor_spec=input_spec,
            state_spec=tree.unflatten_as(
                nested_layers, [net.state_spec for net in networks]
            ),
            name=name,
        )
        self._set_untracked("_layer_nest", nested_layers)
        self._networks = networks

    @property
    def nested_layers(self) -> Any:
        """The nest of networks; a Keras layer is wrapped in a `Sequential`."""
        return tree.unflatten_as(self._layer_nest, list(self._networks))

    def _layer_arguments(self) -> dict[str, Any]:
        return {"nested_layers": self._layer_nest}

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the nest of outputs and the nest of new states.

        Raises:
          TypeError: If the inputs do not have the structure of the layers.
        """
        states = [()] * len(self._networks)
        if checks.has_entries(network_state):
            # `__call__` has compared them with the specs.
            states = tree.flatten_up_to(
                self._layer_nest, network_state, check_types=False
            )
        results = [
            net(part, step_type=step_type, network_state=state, training=training)
            for net, part, state in zip(
                self._networks,
                _flatten_up_to(
                    self._layer_nest, inputs, "`self.nested_layers` and `inputs`"
                ),
                states,
                strict=True,
            )
        ]
        outputs, next_states = zip(*results, strict=True)
        return (
            tree.unflatten_as(self._layer_nest, list(outputs)),
            tree.unflatten_as(self._layer_nest, list(next_states)),
        )


def _check_layers(nested_layers: Any) -> None:
    leaves = tree.flatten_with_path(nested_layers)
    for path, layer in leaves:
        if not isinstance(layer, keras.layers.Layer):
            where = "/".join(map(str, path))
            raise TypeError(
                f"nested_layers[{where}]: got {layer!r}, expected all layers to be "
                "instances of keras Layer; wrap a function in keras.layers.Lambda."
            )
    if not leaves:
        raise ValueError(
            f"nested_layers: got the empty nest {nested_layers!r}, expected a layer "
            "for each part of the observation; add one."
        )


def _flatten_up_to(layers: Any, nest: Any, names: str) -> list[Any]:
    """Returns the part of a nest that each layer takes.

    Raises:
      TypeError: If the nest has another structure than the layers.
    """
    try:
        parts: list[Any] = tree.flatten_up_to(layers, nest, check_types=False)
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"{names} do not have matching structures: got {_outline(nest)}, expected "
            f"the structure of the layers, {_outline(layers)}, or a deeper one; "
            f"rearrange one of them ({error})."
        ) from error
    return parts


def _outline(nest: Any) -> Any:
    return tree.map_structure(lambda leaf: type(leaf).__name__, nest)
