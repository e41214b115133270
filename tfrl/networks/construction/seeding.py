"""Seeds layers, and copies layers.

Keras initialisers ignore `tf.random.set_seed`, and an initialiser that two layers share
gives both the same numbers. So every layer of this package gets its own initialiser
with a seed from a `SeedStream`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.utils import keras_versions


class SeedStream:
    """Generates independent integer seeds from one seed.

    With `seed=None` the stream follows `tf.random.set_seed`. If that was not called,
    the stream starts from the system's entropy.
    """

    def __init__(self, seed: int | None = None):
        """Creates the stream.

        Args:
          seed: The seed that determines the generated seeds; None draws a seed.
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


def stream_of(seed_stream_class: Any, seed: int | None, salt: str) -> Callable[[], int]:
    """Returns a function that draws seeds with a class like `tfp.util.SeedStream`.

    Args:
      seed_stream_class: The class; None takes `SeedStream`.
      seed: The seed that determines the drawn seeds.
      salt: Different salts give different seeds, if the class is given.
    """
    own = SeedStream(seed)
    if seed_stream_class is None:
        return own
    stream = seed_stream_class(seed=seed, salt=salt)

    def draw() -> int:
        drawn = stream()
        return own() if drawn is None else int(drawn) % (2**31 - 1)

    return draw


def clone_initializer(initializer: Any, seed: int | None = None) -> Any:
    """Copies a Keras initialiser, so that no two layers draw the same numbers.

    Args:
      initializer: An initialiser, or a name, configuration or function that
        `keras.initializers.get` takes.
      seed: The seed of the copy; None keeps the initialiser's own seed. If the
        initialiser has a seed, the copy's seed combines both seeds, so that the numbers
        depend on the initialiser's seed and still differ between layers.
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
    """Seeds the initialisers and random generators of a layer that have no seed.

    It seeds the sub-layers, too. Existing weights and explicit seeds do not change.
    """
    for part in internals.flatten_layers(layer):
        if not part.built:
            for name, value in list(vars(part).items()):
                if _is_unseeded(value):
                    setattr(part, name, clone_initializer(value, seeds()))
        generator = getattr(part, "seed_generator", None)
        if generator is not None and getattr(part, "seed", 0) is None:
            generator.state.assign([seeds(), 0])


def reseed_layer(layer: keras.layers.Layer, seeds: SeedStream) -> None:
    """Gives seeded initialisers other seeds, which depend on the old ones.

    The sub-layers' initialisers get other seeds, too. Existing weights do not change.
    """
    for part in internals.flatten_layers(layer):
        if not part.built:
            for name, value in list(vars(part).items()):
                if is_seeded(value):
                    setattr(part, name, clone_initializer(value, seeds()))


def is_seeded(value: Any) -> bool:
    """Whether a value is a Keras initialiser with a seed."""
    return isinstance(value, keras.initializers.Initializer) and isinstance(
        value.get_config().get("seed"), int
    )


def _is_unseeded(value: Any) -> bool:
    return (
        isinstance(value, keras.initializers.Initializer)
        and value.get_config().get("seed", 0) is None
    )


def copy_layer(
    layer: keras.layers.Layer, seeds: SeedStream | None = None
) -> keras.layers.Layer:
    """Creates a layer with the arguments of `layer`, without its weights.

    It is unbuilt, except for a functional model, which Keras builds with its layers.

    Args:
      layer: The layer.
      seeds: Seeds the layers of functional models; None leaves their initialisers.

    Raises:
      TypeError: If `layer` is not a Keras layer, or its constructor's arguments are not
        known.
    """
    keras_versions.check(layer, "layer")
    if not isinstance(layer, keras.layers.Layer):
        raise TypeError(
            f"layer: got {layer!r} of type {type(layer).__name__}, expected a "
            "keras.layers.Layer; wrap a function in keras.layers.Lambda."
        )
    if hasattr(layer, "create_variables") and hasattr(layer, "copy"):
        return layer.copy()
    # Models of other kinds are copied like layers below.
    if isinstance(layer, keras.Sequential):
        copy = functools.partial(copy_layer, seeds=seeds)
        return keras.models.clone_model(layer, clone_function=copy)
    if hasattr(layer, "operations"):
        copy = functools.partial(_copy_operation, seeds=seeds)
        return keras.models.clone_model(layer, clone_function=copy)
    if isinstance(layer, keras.layers.Lambda):
        # It is copied without its configuration, whose byte code loses the closure.
        return type(layer)(
            layer.function,
            output_shape=internals.lambda_output_shape(layer),
            mask=layer.mask,
            arguments=layer.arguments,
            name=layer.name,
        )
    return _copy_by_config(layer)


def _copy_operation(operation: Any, seeds: SeedStream | None) -> Any:
    """Returns the copy of a layer; or an operation without weights, such as `x + y`."""
    if not isinstance(operation, keras.layers.Layer):
        return operation
    copied = copy_layer(operation, seeds)
    if seeds is not None:
        seed_layer(copied, seeds)
    return copied


def _copy_by_config(layer: keras.layers.Layer) -> keras.layers.Layer:
    config = _config(layer)
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
        # `from_config` cannot look up a user's own recurrent cell, for example.
        return type(layer)(**{**config, **inner})
    try:
        copied: keras.layers.Layer = type(layer).from_config(config)
    except TypeError as error:
        raise TypeError(_needs_get_config(layer)) from error
    if not layer.trainable:
        copied.trainable = False
    return copied


# The arguments of `keras.layers.Layer` that every configuration holds.
_ARGUMENTS_OF_KERAS = ("name", "trainable", "dtype")


def _config(layer: keras.layers.Layer) -> dict[str, Any]:
    """Returns the arguments with which a layer's class makes a copy.

    Raises:
      TypeError: If the arguments are unknown.
    """
    writes_config = not _is_of_keras(type(layer).get_config)
    own, takes_any = _own_parameters(layer)
    if own and not writes_config and isinstance(layer, keras.Model):
        # Keras records the defaults for a model, whatever the arguments were.
        raise TypeError(_needs_get_config(layer))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*includes a `lambda`")
        try:
            config: dict[str, Any] = layer.get_config()
        except NotImplementedError as error:
            raise TypeError(_needs_get_config(layer)) from error
    if _is_of_keras(type(layer).from_config) and not takes_any:
        taken = inspect.signature(type(layer)).parameters
        for name in _ARGUMENTS_OF_KERAS:
            if name not in taken:
                config.pop(name, None)
    return config


def _own_parameters(layer: keras.layers.Layer) -> tuple[list[str], bool]:
    """Returns the constructor's own parameters, and whether it has `**kwargs`."""
    parameters = inspect.signature(type(layer)).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [
        parameter.name
        for parameter in parameters
        if parameter.kind not in variadic and parameter.name not in _ARGUMENTS_OF_KERAS
    ]
    return own, any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _is_of_keras(method: Any) -> bool:
    return str(method.__module__).startswith("keras.")


def _needs_get_config(layer: keras.layers.Layer) -> str:
    kind, (own, _) = type(layer).__name__, _own_parameters(layer)
    entries = ", ".join(f'"{name}": self.{name}' for name in own)
    return (
        f"{layer.name}: got a {kind} that cannot be copied, for a target network, say, "
        f"expected the method get_config, since its constructor takes arguments: "
        f"{', '.join(own) or 'unknown ones'}; add to {kind}:\n"
        f"    def get_config(self):\n"
        f"        return {{{entries}}}"
    )


def _is_nameless(value: Any) -> bool:
    """Whether an argument is a callable that Keras cannot look up by its name.

    Examples are a plain function, and an initialiser of TensorFlow or of the user.
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
