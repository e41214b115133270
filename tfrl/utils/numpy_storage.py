"""Stores nests in NumPy arrays that `tf.train.Checkpoint` saves and restores."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.savers import serialization
from tfrl.specs import array_spec
from tfrl.utils import mixins


class NumpyState(tf.train.experimental.PythonState):
    """An object whose attributes are NumPy arrays, saved in checkpoints.

    Restoring sets all attributes that were saved, whether or not they existed before:

    ```python
    state = NumpyState()
    state.x = np.ones([3, 4])
    path = tf.train.Checkpoint(state=state).save(prefix)
    restored = NumpyState()
    tf.train.Checkpoint(state=restored).restore(path)  # restored.x is there
    ```
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not isinstance(value, np.ndarray | np.generic):
            raise TypeError(
                f"{name}: got {value!r}, expected a NumPy array or scalar; wrap the "
                "value in np.asarray."
            )
        super().__setattr__(name, value)

    def serialize(self) -> bytes:
        """Returns the arrays as the bytes of an npz file."""
        arrays = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return serialization.pack_arrays(arrays)

    def deserialize(self, string_value: bytes) -> None:
        """Sets the attributes from the bytes of an npz file."""
        for name, array in serialization.unpack_arrays(string_value).items():
            setattr(self, name, array)


class NumpyStorage(tf.Module, mixins.Untracked):
    """Holds `capacity` rows, each a nest of arrays that matches `data_spec`."""

    def __init__(self, data_spec: Any, capacity: int) -> None:
        """Allocates one array `[capacity, *shape]` of zeros for each leaf.

        Args:
          data_spec: A nest of `ArraySpec`s.
          capacity: The number of rows.

        Raises:
          ValueError: If a leaf is not an `ArraySpec`.
        """
        super().__init__()
        self._set_untracked("_data_spec", data_spec)
        self._state = NumpyState()
        self._names = []
        for i, (path, spec) in enumerate(tree.flatten_with_path(data_spec)):
            if not isinstance(spec, array_spec.ArraySpec):
                raise ValueError(
                    f"data_spec{list(path) or ''}: got {spec!r}, expected an "
                    "ArraySpec. Convert with tensor_spec.to_nest_array_spec."
                )
            self._names.append(f"buffer{i}")
            array = np.zeros((capacity, *spec.shape), spec.dtype)
            setattr(self._state, self._names[-1], array)

    def get(self, idx: Any) -> Any:
        """Returns copies of the values at `idx`, a number or an array `[...]`."""
        values = [np.array(getattr(self._state, n)[idx]) for n in self._names]
        return tree.unflatten_as(self._data_spec, values)

    def set(self, table_idx: Any, value: Any) -> None:
        """Writes the nest `value`, its leaves `[..., *shape]`, at `table_idx`."""
        for name, leaf in zip(self._names, tree.flatten(value), strict=True):
            getattr(self._state, name)[table_idx] = leaf
