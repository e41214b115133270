"""A table that keeps the small parts of a row side by side, in one `tf.Variable`.

A row of a replay buffer is a handful of numbers. With a variable for each of them, a
random row costs a cache miss for each in a large table, and each variable an operation
to write and one to read. Here they are the words of one row.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tree

from tfrl.compilation import internals, words
from tfrl.replay_buffers import table
from tfrl.utils import tracking


class PackedTable(tf.Module, tracking.Untracked):
    """`capacity` rows, each holding one nest of tensors that matches `tensor_spec`.

    Leaves of 32 or 64 bits an element that are not large share one variable
    `[capacity, words]`; every other leaf has one of its own, `[capacity, ...]`, as in a
    `Table`. All start as zeros.
    """

    def __init__(self, tensor_spec: Any, capacity: int, scope: str = "Table") -> None:
        """Creates the variables.

        Args:
          tensor_spec: A nest of `tf.TensorSpec`s with fully defined shapes.
          capacity: The number of rows.
          scope: The prefix of the variables' names.

        Raises:
          ValueError: If a leaf is no `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=scope)
        table.slot_names(tensor_spec)  # Checks the leaves.
        self._set_untracked("_spec", tensor_spec)
        # One leaf alone is better off as it is.
        self._layout = words.WordLayout(tree.flatten(tensor_spec), fewest=2)
        self._table = table.Table(tuple(self._layout.stored_specs), capacity, scope)
        if self._layout.has_words:
            internals.checkpoint_as_int32(self._table.variables()[-1])

    def variables(self) -> list[tf.Variable]:
        """Returns the variables: those of single leaves, then that of the words."""
        return self._table.variables()

    def read(self, rows: Any) -> Any:
        """Returns the values at `rows`.

        Args:
          rows: A row's number, or an integer tensor of any shape `[...]` of them.

        Returns:
          A nest like the spec of tensors `[..., *leaf shape]`.
        """
        flat = self._layout.from_words(self._table.read(rows))
        return tf.nest.pack_sequence_as(self._spec, flat)

    def write_block(self, block: Any, values: Any) -> Any:
        """Writes the `N` rows from `block * N` on; returns the op that does.

        Args:
          block: An integer scalar.
          values: A nest like the spec of tensors `[N, *leaf shape]`.

        Raises:
          ValueError: If `values` and the spec differ in structure.
        """
        tf.nest.assert_same_structure(self._spec, values)
        flat = [
            tf.convert_to_tensor(value, spec.dtype)
            for value, spec in zip(
                tf.nest.flatten(values), tf.nest.flatten(self._spec), strict=True
            )
        ]
        return self._table.write_block(block, tuple(self._layout.to_words(flat)))
