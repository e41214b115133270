"""Sequential: applies layers and networks in turn, as one Network."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import module_network, network, utils
from tfrl.networks.construction import checks, recurrence, seeding
from tfrl.typing import types


@keras.saving.register_keras_serializable("tfrl")
class Sequential(network.Network):
    """Applies Keras layers and Networks in turn.

    The layers are not copied, so that weights can be shared; `copy` makes new layers.

    Recurrent Keras layers and cells work too. A layer such as `keras.layers.LSTM` needs
    `return_state` and `return_sequences` and is wrapped in `RNNWrapper`; a cell is
    wrapped in `DynamicUnroll`. They take `[B, n]` as one step and `[B, T, n]` as a
    sequence, and their state is reset before each step whose `step_type` is FIRST.

    The state spec is the tuple of the non-empty state specs of the layers, `()` if
    there is none. A cell's spec has the cell's own nest and no names, except that a
    list becomes a tuple.
    """

    def __init__(
        self,
        layers: SequenceOf[keras.layers.Layer | Callable[[Any], Any]],
        input_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ):
        """Wraps the layers.

        Args:
          layers: Keras layers, Networks, and functions such as `tf.nn.relu`. A layer or
            function may return a distribution or take one.
          input_spec: The nest of specs of the observations; by default the
            first layer's, if it is a Network.
          name: The network's name.
          seed: Seeds the initialisers and dropouts of unbuilt layers that have no seed
            of their own; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If there are no layers.
          TypeError: If an entry of `layers` is neither a Keras layer nor a function.
          NotImplementedError: If a recurrent layer cannot be wrapped in `RNNWrapper`.
        """
        if not layers:
            raise ValueError(
                f"layers: `layers` must not be empty; saw: {layers}, expected at least "
                "one Keras layer or Network; add one."
            )
        for i, layer in enumerate(layers):
            if isinstance(layer, type) or not callable(layer):
                raise TypeError(
                    f"layers[{i}]: got {layer!r}, expected all layers to be instances "
                    "of keras Layer, or functions; create the layer."
                )
        stack: list[Any] = [
            recurrence.as_recurrent(layer) if recurrence.is_recurrent(layer) else layer
            for layer in map(module_network.as_layer, layers)
        ]
        state_specs = [network.get_state_spec(layer) for layer in stack]
        self._set_untracked("_layer_state_specs", state_specs)
        self._has_state = [checks.has_entries(spec) for spec in state_specs]
        if input_spec is None and isinstance(stack[0], network.Network):
            input_spec = stack[0].input_tensor_spec
        super().__init__(
            input_tensor_spec=input_spec,
            state_spec=tuple(
                _list_as_tuple(s) for s in state_specs if checks.has_entries(s)
            ),
            name=name,
        )
        self._sequential_layers = stack
        seeds = seeding.SeedStream(seed)
        for layer in stack:
            seeding.seed_layer(layer, seeds)

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The layers, in order."""
        return list(self._sequential_layers)

    def _layer_arguments(self) -> dict[str, Any]:
        return {"layers": self.layers}

    @property
    def _least_outer_dims(self) -> int:
        """The smallest number of outer dimensions of inputs: 2 for `[B, T, ...]`."""
        return max(map(_least_outer_dims, self.layers))

    def get_config(self) -> dict[str, Any]:
        """Returns the name and the configurations of the layers, without weights."""
        layers = [keras.saving.serialize_keras_object(layer) for layer in self.layers]
        return {"layers": layers, "name": self.name}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Sequential:
        """Creates a network of new layers from the result of `get_config`."""
        layers = [
            keras.saving.deserialize_keras_object(layer, custom_objects=custom_objects)
            for layer in config["layers"]
        ]
        return cls(layers, name=config["name"])

    def compute_output_signature(self, input_signature: Any) -> Any:
        """Returns the specs of the outputs for batched specs of the inputs."""
        outputs = tf.function(lambda inputs: self(inputs)[0], autograph=False)
        return outputs.get_concrete_function(input_signature).structured_outputs

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        """Returns the last layer's output and the tuple of new states.

        Args:
          inputs: The nest of observations.
          step_type: As for a `Network`.
          network_state: As for a `Network`.
          training: As for a `Network`.
          **kwargs: Arguments for the last layer, which must be a Network, such as the
            `mask` of an `ActorDistributionNetwork`.

        Raises:
          TypeError: There are arguments for the last layer, and it is not a Network.
        """
        last = self._sequential_layers[-1]
        if kwargs and not isinstance(last, network.Network):
            raise TypeError(
                f"{', '.join(kwargs)}: got arguments for the last layer, {last!r}, "
                "expected none, because it is not a Network; end with a Network, such "
                "as an ActorDistributionNetwork or a CategoricalProjectionNetwork."
            )
        outer_rank = self._outer_rank(inputs, step_type)
        states = iter(network_state or [()] * len(self.state_spec))
        next_states = []
        for layer, spec, has_state in zip(
            self._sequential_layers,
            self._layer_state_specs,
            self._has_state,
            strict=True,
        ):
            state = next(states) if has_state else ()
            if checks.has_entries(state):
                state = tf.nest.pack_sequence_as(spec, tf.nest.flatten(state))
            if isinstance(layer, network.Network):
                inputs, state = layer(
                    inputs,
                    step_type=step_type,
                    network_state=state,
                    training=training,
                    **(kwargs if layer is last else {}),
                )
            elif has_state:
                inputs, state = layer(
                    inputs,
                    initial_state=state,
                    reset_mask=recurrence.reset_mask(step_type),
                    training=training,
                )
            else:
                inputs = _apply_layer(layer, inputs, outer_rank, training)
            if has_state:
                next_states.append(_list_as_tuple(state))
        return inputs, tuple(next_states)

    def _outer_rank(self, inputs: Any, step_type: Any) -> int:
        """Returns the number of outer dimensions: 2 for `[B, T, ...]`."""
        if self.input_tensor_spec is not None:
            return utils.outer_rank(inputs, self.input_tensor_spec)
        return step_type.shape.rank if tf.is_tensor(step_type) else 1


def shared_layers(*networks: Any) -> list[keras.layers.Layer]:
    """Returns the layers with which all networks begin, if all are `Sequential`s.

    Layers with a state do not count. Each network keeps a layer of its own.
    """
    if not all(isinstance(other, Sequential) for other in networks):
        return []
    shared = []
    for layer, *others in zip(*(other.layers[:-1] for other in networks), strict=False):
        has_state = checks.has_entries(network.get_state_spec(layer))
        if has_state or any(other is not layer for other in others):
            break
        shared.append(layer)
    return shared


def _list_as_tuple(state: Any) -> Any:
    return tuple(state) if isinstance(state, list) else state


def _least_outer_dims(layer: keras.layers.Layer) -> int:
    """Returns the number of outer dimensions of a layer's inputs: 2 with time."""
    if isinstance(layer, keras.layers.TimeDistributed):
        return 1 + _least_outer_dims(layer.layer)
    if isinstance(layer, keras.Sequential):
        return max(map(_least_outer_dims, layer.layers), default=1)
    return getattr(layer, "_least_outer_dims", 1)


def _apply_layer(
    layer: keras.layers.Layer, inputs: Any, outer_rank: int, training: Any
) -> Any:
    """Applies a Keras layer or model.

    Layers accept any number of outer dimensions, but a model with declared inputs
    accepts only one, and so do layers that flatten their inputs. For such layers a
    sequence `[B, T, ...]` is folded.
    """
    if getattr(layer, "takes_one_outer_dim", False):
        extra = outer_rank - 1
    else:
        extra = _num_extra_dims(layer, inputs)
    if extra <= 0:
        return utils.call_layer(layer, inputs, training)
    squash = utils.BatchSquash(1 + extra)
    outputs = layer(tf.nest.map_structure(squash.flatten, inputs), training=training)
    return tf.nest.map_structure(squash.unflatten, outputs)


def _num_extra_dims(layer: keras.layers.Layer, inputs: Any) -> int:
    if not (isinstance(layer, keras.Model) and layer.built):
        return 0
    declared = getattr(layer, "inputs", None)
    if not declared:
        return 0
    rank = tf.nest.flatten(inputs)[0].shape.rank
    return int(rank - len(tf.nest.flatten(declared)[0].shape))
