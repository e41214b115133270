"""Base classes of layers that record their constructor's arguments, for copies."""

from __future__ import annotations

import inspect
from typing import Any, Self

import keras
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.networks.construction import seeding
from tfrl.savers import input_specs
from tfrl.utils import mixins


class Recorded(mixins.Untracked):
    """Mixin of layers that records a constructor's arguments, for copies of the layer.

    It comes before `keras.layers.Layer` among the bases.
    """

    _arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Creates the layer and records its arguments."""
        _show_signature(cls)
        layer = super().__new__(cls, *args, **kwargs)
        # Untracked, since layers among the arguments are not part of every layer.
        layer._set_untracked("_arguments", _bind(cls, args, kwargs))
        return layer

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns a layer of the same arguments, whose weights are new and equal."""
        del memo  # `copy.deepcopy` itself looks up and adds the layer.
        copied: Self = deep_copy(self)
        return copied


def _show_signature(cls: type) -> None:
    """Writes the signature of a decorated constructor where Keras reads it.

    A wrapper made by `functools.wraps`, such as that of `gin.configurable`, takes any
    arguments. Keras asks both for the wrapper's own arguments and for the signature of
    what it wraps, and fails where they differ.
    """
    init: Any = cls.__init__  # type: ignore[misc]
    if hasattr(init, "__wrapped__") and not hasattr(init, "__signature__"):
        init.__signature__ = inspect.signature(init)


def check_init(cls: type) -> None:
    """Checks that a constructor takes only named arguments.

    Raises:
      RuntimeError: If the constructor takes `*args`.
    """
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        raise RuntimeError(
            f"{cls.__name__}.__init__ accepts *args, expected named arguments alone, "
            "since copy() repeats the call by name; name them."
        )


def check_taken(cls: type, arguments: dict[str, Any]) -> None:
    """Checks that a constructor takes these arguments.

    Raises:
      TypeError: If it does not take one of them.
    """
    parameters = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    kinds = [parameter.kind for parameter in parameters.values()]
    unknown = [name for name in arguments if name not in parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise TypeError(
            f"{cls.__name__}.copy: got {', '.join(unknown)}, expected arguments of "
            f"{cls.__name__}.__init__, which are {', '.join([*parameters][1:])}; let "
            f"__init__ take {' and '.join(unknown)}, too (agents give each copy a "
            "name, for super().__init__)."
        )


def _bind(cls: type, args: Any, kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of a constructor call by name."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    try:
        arguments = dict(signature.bind(None, *args, **kwargs).arguments)
    except TypeError:
        # The arguments do not fit, so __init__ will raise the error.
        return {}
    this, *_ = signature.parameters
    del arguments[this]
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(name, {}))
    return arguments


def parameters_of_call(call: Any) -> tuple[tuple[str, ...], bool]:
    """Returns the names of `call`'s parameters, and whether it takes `**kwargs`."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(names), takes_any


def deep_copy(layer: Any) -> Any:
    """Returns a layer of the same arguments, whose weights are new and equal.

    Keras copies a layer by writing it to a file, which fails for functions, and for
    layers that build their inner layers when they are called.

    Args:
      layer: A Network or a `RecordedLayer`.

    Raises:
      ValueError: The layer has weights, but the specs of its inputs are not known.
      TypeError: An inner layer cannot be copied.
    """
    seed = layer._arguments.get("seed")
    if hasattr(layer, "copy") and isinstance(seed, int):
        # Without the seed it would be a copy with other initial weights.
        copied = layer.copy(seed=seed)
    else:
        copied = seeding.copy_layer(layer)
    if layer.built and layer.variables:
        _create_variables(copied, layer)
        pairs = zip(copied.variables, layer.variables, strict=True)
        for variable, original in pairs:
            variable.assign(original)
    copied.trainable = layer.trainable
    return copied


def _create_variables(copied: Any, layer: Any) -> None:
    if getattr(layer, "input_tensor_spec", None) is not None:
        copied.create_variables(layer.input_tensor_spec)
        return
    specs = input_specs.recall(layer)
    if specs is None:
        raise ValueError(
            f"copy.deepcopy: the inputs of {layer.name!r} are not known, expected a "
            "layer that was called with tensors; call tfrl.acme.tf.utils."
            "create_variables(layer, [spec]) before its first call."
        )
    copied(
        *tf.nest.map_structure(
            lambda spec: tf.zeros([size or 1 for size in spec.shape], spec.dtype),
            specs,
        )
    )


class RecordedLayer(internals.TracksMore, Recorded, keras.layers.Layer):
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
