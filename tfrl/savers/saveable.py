"""Objects that return and restore their state, for checkpoints."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfrl.savers import serialization


class Saveable(abc.ABC):
    """An object that returns and restores its state as a nest of arrays."""

    @abc.abstractmethod
    def save(self) -> Any:
        """Returns the state.

        The state consists of arrays, numbers, strings, bytes and None, in lists,
        tuples, named tuples and dictionaries.
        """

    @abc.abstractmethod
    def restore(self, state: Any) -> None:
        """Restores a state that `save` returned."""


class TFSaveable(abc.ABC):
    """An object that names the variables and modules that a checkpoint should hold."""

    @property
    @abc.abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Returns variables, modules and other trackable objects, by name."""


class SaveableAdapter(tf.train.experimental.PythonState):
    """Lets `tf.train.Checkpoint` save a `Saveable`.

    The checkpoint holds arrays and JSON, never pickles, so that reading the checkpoint
    of somebody else cannot run code.
    """

    def __init__(self, object_to_save: Saveable) -> None:
        """Creates an adapter.

        Args:
          object_to_save: The object whose state is saved and restored.
        """
        self._object_to_save = object_to_save

    def serialize(self) -> bytes:
        """Returns the object's state as bytes.

        Raises:
          TypeError: If the state holds a value that is not an array, a number, text or
            None; the message names its place.
        """
        return serialization.to_bytes(self._object_to_save.save())

    def deserialize(self, string_value: bytes) -> None:
        """Restores the object's state from bytes of `serialize`."""
        self._object_to_save.restore(serialization.from_bytes(string_value))


def as_trackable(thing: Any) -> Any:
    """Wraps `Saveable`s and `TFSaveable`s, so that TensorFlow can save them."""
    if isinstance(thing, Saveable):
        return SaveableAdapter(thing)
    if isinstance(thing, TFSaveable):
        parts = {name: as_trackable(part) for name, part in thing.state.items()}
        return tf.train.Checkpoint(**parts)
    return thing
