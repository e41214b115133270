"""Checks that items to write into a buffer match its spec."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from tfrl.typing import types


class BatchCheck:
    """Turns a batch of items into tensors that match a spec, or raises a ValueError.

    Arrays are cast to the spec's dtype if NumPy's "same_kind" rule allows it (float64
    to float32, int64 to int32 or float32). Tensors are never cast.
    """

    def __init__(
        self, data_spec: types.NestedTensorSpec, batch_size: int | None
    ) -> None:
        """Prepares checks of leaves `[batch_size, *spec shape]`.

        Args:
          data_spec: A nest of `tf.TensorSpec`s.
          batch_size: The outer dimension of every leaf; None allows any.
        """
        self._data_spec = data_spec
        self._leaves = [
            _Leaf(
                "/".join(map(str, path)),
                spec.dtype,
                tf.TensorShape([batch_size, *spec.shape]),
            )
            for path, spec in tree.flatten_with_path(data_spec)
        ]

    def __call__(self, items: Any) -> Any:
        """Returns `items` as tensors, after the checks."""
        try:
            tf.nest.assert_same_structure(items, self._data_spec)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "items: got another structure than the buffer's data_spec; pass items "
                f"nested as data_spec is. {error}"
            ) from error
        checked = [
            leaf.checked(item)
            for leaf, item in zip(self._leaves, tf.nest.flatten(items), strict=True)
        ]
        return tf.nest.pack_sequence_as(self._data_spec, checked)


class _Leaf(NamedTuple):
    """The dtype and shape expected at one place in the nest of items."""

    path: str
    dtype: tf.DType
    shape: tf.TensorShape

    def checked(self, item: Any) -> tf.Tensor:
        dtype = getattr(item, "dtype", self.dtype)
        if dtype != self.dtype and not self._casts(item):
            raise ValueError(
                f"items at '{self.path}': got dtype {tf.as_dtype(item.dtype).name}, "
                f"expected {self.dtype.name}. Cast the items or change data_spec."
            )
        tensor = tf.convert_to_tensor(item, self.dtype)
        if not tensor.shape.is_compatible_with(self.shape):
            raise ValueError(
                f"items at '{self.path}': got shape {tensor.shape}, expected "
                f"{self.shape}: a batch of the buffer's size, then the shape in "
                "data_spec. Reshape the items or make a buffer that fits them."
            )
        return tensor

    def _casts(self, item: Any) -> bool:
        return isinstance(item, np.ndarray | np.generic) and np.can_cast(
            item.dtype, self.dtype.as_numpy_dtype, "same_kind"
        )
