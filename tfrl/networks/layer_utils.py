"""Looking into layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def print_summary(
    model: keras.layers.Layer, print_fn: Callable[[str], Any] | None = None
) -> None:
    """Prints the variables of a built layer, their shapes and how many are trained."""
    write = print_fn or print
    write(f"{type(model).__name__} {model.name!r}")
    for variable in model.variables:
        path = getattr(variable, "path", variable.name)
        write(f"  {path}  {tuple(variable.shape)}  {variable.dtype}")
    total = sum(int(tf.size(v)) for v in model.trainable_variables)
    write(f"  trainable parameters: {total:,}")


def tf_variables(layer: keras.layers.Layer) -> list[tf.Variable]:
    """Plain `tf.Variable`s set as attributes in a layer, which Keras does not count."""
    found: dict[int, tf.Variable] = {}
    for part in layer._flatten_layers():
        for value in vars(part).values():
            entries = value if isinstance(value, list | tuple) else [value]
            found.update((id(v), v) for v in entries if isinstance(v, tf.Variable))
    return list(found.values())
