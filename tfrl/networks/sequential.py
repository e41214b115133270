"""Sequential: layers and networks one after the other, as one Network."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

import keras
import tensorflow as tf

from tfrl.networks import checks, network, seeding, utils


class Sequential(network.Network):
    """Applies Keras layers and Networks in turn.

    The layers are used themselves, so that weights can be shared; `copy` makes new
    ones. The state spec is the tuple of the non-empty state specs of the layers, `()`
    if there is none.
    """

    def __init__(
        self,
        layers: SequenceOf[keras.layers.Layer],
        input_spec: Any = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ):
        """Takes the layers.

        Args:
          layers: Keras layers and Networks. A plain function goes into a
            `keras.layers.Lambda`.
          input_spec: The nest of specs of the observations; by default that of the
            first layer, if it is a Network.
          name: The network's name.
          seed: Seeds whatever initialisers and dropouts of unbuilt layers have no seed
            of their own; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If there are no layers.
          TypeError: If one is not a Keras layer, or a recurrent Keras layer.
        """
        if not layers:
            raise ValueError(
                f"layers: `layers` must not be empty; saw: {layers}, expected at least "
                "one Keras layer or Network; add one."
            )
        for i, layer in enumerate(layers):
            if not isinstance(layer, keras.layers.Layer):
                raise TypeError(
                    f"layers[{i}]: got {layer!r}, expected all layers to be instances "
                    "of keras Layer; wrap a function in keras.layers.Lambda."
                )
        state_specs = [network.get_state_spec(layer) for layer in layers]
        self._has_state = [checks.has_entries(spec) for spec in state_specs]
        if input_spec is None and isinstance(layers[0], network.Network):
            input_spec = layers[0].input_tensor_spec
        super().__init__(
            input_tensor_spec=input_spec,
            state_spec=tuple(s for s in state_specs if checks.has_entries(s)),
            name=name,
        )
        self._sequential_layers = list(layers)
        seeds = seeding.SeedStream(seed)
        for layer in layers:
            seeding.seed_layer(layer, seeds)

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The layers, in order."""
        return list(self._sequential_layers)

    def copy(self, **kwargs: Any) -> Sequential:
        """Makes a new `Sequential` of copies of the layers, without their weights."""
        if "layers" not in kwargs:
            kwargs["layers"] = [seeding.copy_layer(layer) for layer in self.layers]
        copied: Sequential = super().copy(**kwargs)
        return copied

    def call(
        self,
        inputs: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the last layer's output and the tuple of new states."""
        states = iter(network_state or [()] * len(self.state_spec))
        next_states = []
        for layer, has_state in zip(
            self._sequential_layers, self._has_state, strict=True
        ):
            if not isinstance(layer, network.Network):
                inputs = _apply_layer(layer, inputs, training)
                continue
            inputs, state = layer(
                inputs,
                step_type=step_type,
                network_state=next(states) if has_state else (),
                training=training,
            )
            if has_state:
                next_states.append(state)
        return inputs, tuple(next_states)


def _apply_layer(layer: keras.layers.Layer, inputs: Any, training: Any) -> Any:
    """Applies a Keras layer or model.

    A model whose inputs are declared takes them with one batch dimension only, where
    plain layers take any number: a sequence `[B, T, ...]` is folded for it.
    """
    extra = _num_extra_dims(layer, inputs)
    if extra <= 0:
        return layer(inputs, training=training)
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
