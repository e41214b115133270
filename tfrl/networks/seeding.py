"""Seeds for layers, and copies of layers.

Keras initialisers ignore `tf.random.set_seed` and repeat their numbers when one
instance serves two layers, so every layer of ours gets an initialiser of its own with a
seed from a `SeedStream`.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.compilation import internals


class SeedStream:
    """Generates independent integer seeds, determined by the first.

    With `seed=None` the stream follows `tf.random.set_seed`; without that either, it
    starts from the system's entropy.
    """

    def __init__(self, seed: int | None = None):
        """Creates the stream.

        Args:
          seed: The seed that determines all others; None draws one.
        """
        if seed is None:
            with tf.init_scope():
                drawn = tf.random.uniform([], maxval=tf.int64.max, dtype=tf.int64)
            seed = int(drawn)
        self._sequence = np.random.SeedSequence(int(seed) & (2**63 - 1))

    def __call__(self) -> int:
        """Returns the next seed, in `[0, 2**31)`."""
        (child,) = self._sequence.spawn(1)
        return int(child.generate_state(1)[0]) >> 1


def clone_initializer(initializer: Any, seed: int | None = None) -> Any:
    """Copies a Keras initialiser, so that two layers do not draw the same numbers.

    Args:
      initializer: An initialiser, or a name, configuration or function that
        `keras.initializers.get` takes.
      seed: The seed of the copy. A seed that the initialiser was itself given is mixed
        with it: it still decides, and layers still differ. None keeps the given ones.
    """
    if isinstance(initializer, str | dict):
        initializer = keras.initializers.get(initializer)
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if seed is not None and "seed" in config:
        own = config["seed"]
        config["seed"] = SeedStream(own)() ^ seed if isinstance(own, int) else seed
    return type(initializer).from_config(config)


def seed_layer(layer: keras.layers.Layer, seeds: SeedStream) -> None:
    """Seeds whatever in an unbuilt layer was left to Keras' own entropy.

    That is every initialiser and random generator without an explicit seed, here and in
    the sub-layers. Weights that exist, and seeds that were given, stay as they are.
    """
    for part in internals.flatten_layers(layer):
        if not part.built:
            for name, value in list(vars(part).items()):
                if _is_unseeded(value):
                    setattr(part, name, clone_initializer(value, seeds()))
        generator = getattr(part, "seed_generator", None)
        if generator is not None and getattr(part, "seed", 0) is None:
            generator.state.assign([seeds(), 0])


def _is_unseeded(value: Any) -> bool:
    return (
        isinstance(value, keras.initializers.Initializer)
        and value.get_config().get("seed", 0) is None
    )


def copy_layer(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Creates an unbuilt layer with the arguments of `layer`, without its weights.

    Raises:
      TypeError: If `layer` is not a Keras layer.
    """
    if not isinstance(layer, keras.layers.Layer):
        raise TypeError(
            f"layer: got {layer!r} of type {type(layer).__name__}, expected a "
            "keras.layers.Layer; wrap a function in keras.layers.Lambda."
        )
    if hasattr(layer, "create_variables") and hasattr(layer, "copy"):
        return layer.copy()
    if isinstance(layer, keras.Sequential) or hasattr(layer, "operations"):
        # A sequential or functional model; others are layers with a configuration.
        return keras.models.clone_model(layer, clone_function=copy_layer)
    if isinstance(layer, keras.layers.Lambda):
        # Its configuration holds byte code, which loses the function's closure.
        return type(layer)(
            layer.function,
            output_shape=internals.lambda_output_shape(layer),
            mask=layer.mask,
            arguments=layer.arguments,
            name=layer.name,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*includes a `lambda`")
        config = layer.get_config()
    inner = {}
    for key in config:
        value: Any = getattr(layer, key, None)
        if isinstance(value, keras.layers.Layer):
            inner[key] = copy_layer(value)
        elif _is_list_of_layers(value):
            inner[key] = [copy_layer(entry) for entry in value]
        elif _is_nameless(value):
            config[key] = value
    if inner:
        # Nor can a user's own recurrent cell.
        return type(layer)(**{**config, **inner})
    return type(layer).from_config(config)


def _is_nameless(value: Any) -> bool:
    """Whether Keras cannot look up an argument by its name.

    That is a plain function, an initialiser of TensorFlow's, or one of the user's own.
    """
    return (
        callable(value)
        and not inspect.ismethod(value)
        and not type(value).__module__.startswith("keras.")
    )


def _is_list_of_layers(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(entry, keras.layers.Layer) for entry in value)
    )
