"""Finds Keras layers that have no variables yet."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from typing import Any

import keras

_warned: weakref.WeakSet[keras.Layer] = weakref.WeakSet()


def warn_of(parts: Mapping[str, Any]) -> list[str]:
    """Returns the names of layers that have no variables; warns once of each layer.

    Args:
      parts: Keras layers and other objects, by name.
    """
    missing = [
        name
        for name, part in parts.items()
        if isinstance(part, keras.Layer) and not part.built
    ]
    for name in missing:
        if parts[name] not in _warned:
            _warned.add(parts[name])
            warnings.warn(
                f"objects_to_save: {name!r} has no variables yet, so nothing of it is "
                "saved until it is built; call tfrl.acme.tf.utils.create_variables("
                f"{name}, [spec]) before saving.",
                RuntimeWarning,
                stacklevel=3,
            )
    return missing
