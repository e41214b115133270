"""A table that keeps the small parts of a row side by side, in one `tf.Variable`.

A row of a replay buffer is a handful of numbers. With a variable for each of them, a
random row costs a cache miss for each in a large table, and each variable an operation
to write and one to read. Here they are the words of one row of int32: bits, not values,
so that nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tree

from tfrl.replay_buffers import table

_WORD = 4
_LARGEST_PACKED = 4096  # Bytes; copying more costs more than another variable.


class PackedTable(tf.Module):
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
          scope: What the variables' names begin with.

        Raises:
          ValueError: If a leaf is no `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=scope)
        table.slot_names(tensor_spec)  # Checks the leaves.
        # Set past tf.Module's tracking, which would wrap lists and tuples.
        object.__setattr__(self, "_spec", tensor_spec)
        self._leaves = [_Leaf(spec) for spec in tree.flatten(tensor_spec)]
        packed = [leaf.words for leaf in self._leaves if leaf.packed]
        # One leaf alone is better off as it is.
        self._packs = len(packed) > 1
        storage_spec: list[tf.TensorSpec] = [
            leaf.spec for leaf in self._leaves if not self._is_packed(leaf)
        ]
        if self._packs:
            storage_spec.append(tf.TensorSpec([sum(packed)], tf.int32))
        self._table = table.Table(tuple(storage_spec), capacity, scope)

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
        stored = list(self._table.read(rows))
        if self._packs:
            words = tf.split(
                stored.pop(),
                [leaf.words for leaf in self._leaves if leaf.packed],
                axis=-1,
            )
        flat = [
            leaf.from_words(words.pop(0)) if self._is_packed(leaf) else stored.pop(0)
            for leaf in self._leaves
        ]
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
        stored, words = [], []
        for leaf, value in zip(self._leaves, tf.nest.flatten(values), strict=True):
            value = tf.convert_to_tensor(value, leaf.spec.dtype)
            if self._is_packed(leaf):
                words.append(leaf.to_words(value))
            else:
                stored.append(value)
        if words:
            stored.append(tf.concat(words, axis=-1))
        return self._table.write_block(block, tuple(stored))

    def _is_packed(self, leaf: _Leaf) -> bool:
        return self._packs and leaf.packed


class _Leaf:
    """How one leaf of a row is laid out."""

    def __init__(self, spec: tf.TensorSpec) -> None:
        self.spec = spec
        size = math.prod(spec.shape)
        is_number = spec.dtype.is_floating or spec.dtype.is_integer
        self.packed = (
            is_number
            and not spec.dtype.is_quantized
            and spec.dtype.size in (_WORD, 2 * _WORD)
            and 0 < size * spec.dtype.size <= _LARGEST_PACKED
        )
        self.words = size * spec.dtype.size // _WORD if self.packed else 0

    def to_words(self, value: tf.Tensor) -> tf.Tensor:
        """Returns `[N, words]` for values `[N, *shape]`."""
        if value.dtype != tf.int32:
            value = tf.bitcast(value, tf.int32)
        return tf.reshape(value, [-1, self.words])

    def from_words(self, words: tf.Tensor) -> tf.Tensor:
        """Returns values `[..., *shape]` for `[..., words]`."""
        if self.spec.dtype.size == 2 * _WORD:
            words = _reshape_last(words, [self.words // 2, 2])
        if self.spec.dtype != tf.int32:
            words = tf.bitcast(words, self.spec.dtype)
        return (
            words
            if self.spec.shape.rank == 1
            else _reshape_last(words, self.spec.shape)
        )


def _reshape_last(tensor: tf.Tensor, shape: Sequence[int]) -> tf.Tensor:
    """Gives the last dimension of `tensor` another shape."""
    outer = tensor.shape[:-1]
    if outer.is_fully_defined():
        return tf.reshape(tensor, [*outer, *shape])
    return tf.reshape(tensor, tf.concat([tf.shape(tensor)[:-1], shape], axis=0))
