"""Remembers the specs of the inputs with which layers were first called.

Keras keeps only the shapes, and only for layers that are called with one input.
"""

from __future__ import annotations

import weakref
from typing import Any

import keras
import tensorflow as tf

_known: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def remember(layer: keras.Layer | tf.Module, inputs: tuple[Any, ...]) -> None:
    """Keeps the specs of a layer's inputs, unless it has some already.

    Args:
      layer: The layer or module.
      inputs: The layer's positional arguments, nests of tensors or arrays `[B, ...]`.
        For other arguments, such as distributions, nothing is kept.
    """
    leaves = tf.nest.flatten(inputs)
    if leaves and all(hasattr(x, "shape") and hasattr(x, "dtype") for x in leaves):
        _known.setdefault(layer, tf.nest.map_structure(_spec, inputs))


def recall(layer: keras.Layer | tf.Module) -> tuple[Any, ...] | None:
    """Returns a nest of specs `[None, ...]` for each input; None if none are known.

    Floating specs have the layer's compute dtype if the layer casts its inputs.
    """
    specs = _known.get(layer)
    if not isinstance(layer, keras.Layer):
        return specs
    if specs is None:
        shape = (layer.get_build_config() or {}).get("input_shape")
        if shape is None:
            return None
        specs = (_from_shapes(shape, layer.compute_dtype),)
    return tf.nest.map_structure(
        lambda spec: (
            tf.TensorSpec(spec.shape, layer.compute_dtype)
            if spec.dtype.is_floating and layer.autocast
            else spec
        ),
        specs,
    )


def _spec(tensor: Any) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)


def _from_shapes(shape: Any, dtype: str) -> Any:
    """Returns the spec of a shape, with any batch size, or the nest of such specs."""
    if isinstance(shape, dict):
        return {key: _from_shapes(value, dtype) for key, value in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return tf.TensorSpec([None, *shape[1:]], dtype)
    return type(shape)(_from_shapes(item, dtype) for item in shape)
