"""A table that keeps the small parts of a row side by side, in one `tf.Variable`.

A row of a replay buffer often consists of a few numbers. If each number had its own
variable, reading a random row of a large table would cost a cache miss for each number,
and every variable would need an operation to write and one to read. Here the numbers
are the words of one row.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tree

from tfrl.compilation import internals, words
from tfrl.replay_buffers import table
from tfrl.utils import tracking


class PackedTable(tf.Module, tracking.Untracked):
    """Holds `capacity` rows, each a nest of tensors that matches `tensor_spec`.

    Small leaves of 32 or 64 bits per element share one variable `[capacity, words]`.
    Every other leaf has its own variable, `[capacity, ...]`, as in a `Table`. All
    variables start as zeros.
    """

    def __init__(self, tensor_spec: Any, capacity: int, scope: str = "Table") -> None:
        """Creates the variables.

        Args:
          tensor_spec: A nest of `tf.TensorSpec`s with fully defined shapes.
          capacity: The number of rows.
          scope: The prefix of the variables' names.

        Raises:
          ValueError: If a leaf is not a `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=scope)
        table.slot_names(tensor_spec)  # This checks the leaves.
        self._set_untracked("_spec", tensor_spec)
        # Packing a single leaf would gain nothing.
        self._layout = words.WordLayout(tree.flatten(tensor_spec), fewest=2)
        self._table = table.Table(tuple(self._layout.stored_specs), capacity, scope)
        if self._layout.has_words:
            internals.checkpoint_as_int32(self._table.variables()[-1])

    def variables(self) -> list[tf.Variable]:
        """Returns the variables of separate leaves, and then the variable of words."""
        return self._table.variables()

    def read(self, rows: Any) -> Any:
        """Returns the values at `rows`.

        Args:
          rows: A row number, or an integer tensor `[...]` of row numbers.

        Returns:
          Tensors `[..., *leaf shape]`, in the structure of the spec.
        """
        flat = self._layout.from_words(self._table.read(rows))
        return tf.nest.pack_sequence_as(self._spec, flat)

    def write_block(self, block: Any, values: Any) -> Any:
        """Writes the `N` rows that start at row `block * N`; returns the operation.

        Args:
          block: The number of the block, an integer scalar.
          values: Tensors `[N, *leaf shape]`, in the structure of the spec.

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
