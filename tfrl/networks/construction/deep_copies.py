"""Copies networks and layers together with their weights, for `copy.deepcopy`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.networks.construction import seeding
from tfrl.savers import input_specs


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
