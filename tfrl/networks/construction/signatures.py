"""Records constructors' arguments, by which `copy.deepcopy` copies a layer."""

from __future__ import annotations

import inspect
from typing import Any, Self

import tensorflow as tf

from tfrl.networks.construction import seeding
from tfrl.savers import input_specs
from tfrl.utils import tracking


class Recorded(tracking.Untracked):
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
