"""Attributes that TensorFlow and Keras do not track.

A `tf.Module` and a Keras layer track the values of their attributes: dictionaries,
lists and namedtuples become trackable copies of other types, and checkpoints hold an
entry for each. A nest of specs should stay as it was given.
"""

from __future__ import annotations

from typing import Any


class Untracked:
    """Mixin of modules and layers with attributes that are not tracked."""

    def _set_untracked(self, name: str, value: Any) -> None:
        """Sets the attribute `name` to `value` itself, which checkpoints then ignore.

        Variables in `value` are saved only if another attribute holds them, too.
        """
        object.__setattr__(self, name, value)
