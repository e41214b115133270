"""Base classes of layers made of other layers, and of layers that draw numbers."""

from __future__ import annotations

from typing import Any, Self

import keras
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.networks.construction import signatures
from tfrl.savers import input_specs


class RecordedLayer(internals.TracksMore, signatures.Recorded, keras.layers.Layer):
    """Base class of layers made of other layers; records its constructor's arguments.

    The arguments are the layer's configuration, so that a subclass that implements only
    `__init__` and `call` can be copied (for a target network, say) and saved. An
    argument that is a layer or a list of layers must also be an attribute of the same
    name. Initialisers must not be attributes: `seeding.seed_layer` seeds such
    attributes, and a copy would repeat the numbers.
    """

    # Whether inputs are [B, ...]; if so, `Sequential` folds the time dimension of [B,
    # T, ...].
    takes_one_outer_dim = False

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Applies the layer; the first call records its inputs for a `Snapshotter`."""
        was_built = self.built
        outputs = super().__call__(*inputs, **kwargs)
        if not was_built:
            input_specs.remember(self, inputs)
        return outputs

    def build(self, *input_shapes: Any, **named_shapes: Any) -> None:
        """Makes no variables, since inner layers build themselves when called."""

    def also_tracked(self) -> dict[str, Any]:
        """Returns all variables, for checkpoints: also those of layers in lists."""
        return {f"variable_{i}": v for i, v in enumerate(self.variables)}

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self._arguments}

    def get_build_config(self) -> None:
        """Returns None, so that a layer made from a configuration is not built."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a layer from the result of `get_config`, without weights."""
        return cls(**{name: _revived(value) for name, value in config.items()})


class RandomLayer(RecordedLayer):
    """Base class of layers that draw random numbers.

    A call of a layer has no argument for a seed, and a random operation with a hidden
    state would draw different numbers in compiled and in plain graphs. So a layer draws
    its seeds from a `keras.random.SeedGenerator`, whose state is a variable that each
    call advances, and its numbers are functions of a seed
    (`tfrl.utils.random_numbers.seeds`). The numbers are the same in plain and compiled
    graphs, and the sequence continues after a checkpoint is restored.
    """

    def __init__(self, seed: int | None = None, **kwargs: Any):
        """Creates the layer.

        Args:
          seed: The seed of the numbers; None draws a seed, or derives it from the seed
            of the network that holds the layer, such as `Sequential`.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def next_seed(self) -> tf.Tensor:
        """Returns the next stateless seed, int64 `[2]`."""
        return tf.cast(self.seed_generator.next(), tf.int64)


def _revived(value: Any) -> Any:
    """Returns an entry of a configuration with the Keras objects that it describes."""
    if isinstance(value, dict) and "class_name" in value:
        return keras.saving.deserialize_keras_object(value)
    return [_revived(entry) for entry in value] if isinstance(value, list) else value
