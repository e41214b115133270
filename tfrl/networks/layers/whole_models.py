"""Models of Keras that encode a whole nest of observations at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.typing import types


def takes_nests(layer: Any) -> bool:
    """Whether a layer may take a nest of tensors.

    A functional model may, and so may a layer or a model of a class of one's own.
    """
    if isinstance(layer, keras.Sequential):
        return False
    return hasattr(layer, "operations") or not type(layer).__module__.startswith(
        "keras."
    )


def joined(
    model: keras.layers.Layer,
    observation_spec: types.NestedTensorSpec,
    layers_before: Callable[[tuple[Any, ...], tf.TensorSpec], Sequence[Any]],
) -> keras.Model:
    """Returns a functional model from the flat list of observations to a vector.

    Args:
      model: The model of the whole nest. If it is functional, its inputs are named as
        the leaves of a dict are, or have the structure of the observation.
      observation_spec: The nest of specs of one observation.
      layers_before: Returns the layers that each observation passes before the model,
        from its path and its spec.

    Raises:
      ValueError: An input of the model is missing, has another shape than its
        observation, or has no observation; or the model returns several tensors.
    """
    inputs, seen = [], {}
    for path, spec in tree.flatten_with_path(observation_spec):
        tensor = keras.Input(spec.shape, dtype=spec.dtype.name)
        inputs.append(tensor)
        for layer in layers_before(path, spec):
            tensor = layer(tensor)
        seen["/".join(map(str, path))] = tensor
    if hasattr(model, "operations"):
        arranged = _arranged(model, isinstance(observation_spec, Mapping), seen)
    else:
        arranged = tf.nest.pack_sequence_as(observation_spec, list(seen.values()))
    outputs = model(arranged)
    if not isinstance(outputs, keras.KerasTensor):
        raise ValueError(
            f"encoder: the model returns {outputs}, expected one tensor; join its "
            "outputs by keras.layers.Concatenate()."
        )
    return keras.Model(inputs, keras.layers.Flatten()(outputs))


def _arranged(model: Any, by_names: bool, seen: dict[str, Any]) -> Any:
    """Returns the observations as a functional model takes them."""
    structure = model.input
    if by_names and not isinstance(structure, Mapping):
        wanted = {tensor.name: tensor for tensor in model.inputs}
    else:
        wanted = {
            "/".join(map(str, path)): tensor
            for path, tensor in tree.flatten_with_path(structure)
        }
    for name, tensor in wanted.items():
        if name in seen and not _fits(tensor.shape, seen[name].shape):
            raise ValueError(
                f"encoder: the model's input {name!r} has the shape "
                f"{list(tensor.shape[1:])}, expected {list(seen[name].shape[1:])}, in "
                f"which the observation comes to it; make it keras.Input("
                f"{tuple(seen[name].shape[1:])}, name={name!r})."
            )
    missing = [name for name in seen if name not in wanted]
    if missing or len(wanted) > len(seen):
        leaves = ", ".join(f"{name} {list(x.shape[1:])}" for name, x in seen.items())
        raise ValueError(
            f"encoder: the model has the inputs {', '.join(wanted)}, expected one for "
            f"each leaf of the observation, {leaves}; name them so, by "
            "keras.Input(shape, name=...)."
        )
    return tree.unflatten_as(structure, [seen[name] for name in wanted])


def _fits(given: Any, expected: Any) -> bool:
    return tf.TensorShape(given).is_compatible_with(tf.TensorShape(expected))
