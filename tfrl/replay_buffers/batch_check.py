"""Checks that items to write into a buffer match its spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import matching
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
        self._outer = (batch_size,)
        self._leaves = [
            (matching.join("items", *path), spec)
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
            self._checked(where, item, spec)
            for (where, spec), item in zip(
                self._leaves, tf.nest.flatten(items), strict=True
            )
        ]
        return tf.nest.pack_sequence_as(self._data_spec, checked)

    def _checked(self, where: str, item: Any, spec: tf.TensorSpec) -> tf.Tensor:
        if isinstance(item, np.ndarray | np.generic):
            item = matching.cast(item, spec)
        has_dtype = hasattr(item, "dtype")
        tensor = tf.convert_to_tensor(item, None if has_dtype else spec.dtype)
        remedy = "cast the items, or give a batch of items like data_spec"
        matching.check(where, tensor, spec, self._outer, remedy=remedy)
        return tensor
