"""Packs many small tensors into one tensor of 32-bit words.

Each tensor has fixed costs: one more output of a `tf.numpy_function`, one more variable
to write, one more cache miss to read. So small tensors are stored side by side in one
row of words. The words hold the bits of the values, so nothing is rounded. Words are
uint32, for which TensorFlow has GPU kernels to gather and scatter (int32 has none).
They are concatenated and split as float32, the dtype of most leaves, which takes the
fewest operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

WORD = tf.uint32
_WORD_BYTES = 4
_LARGEST_PACKED = 4096  # Bytes. Copying more than this costs more than one more tensor.


class WordArrays(NamedTuple):
    """NumPy arrays of stored tensors, and views of the values in them.

    Attributes:
      stored: An array for each of the layout's `stored_specs`.
      values: An array for each tensor, in the memory of `stored`: write to these.
      floats: Arrays over all floats of `stored`. Adjacent float32 numbers are in one
        array.
    """

    stored: list[np.ndarray]
    values: list[np.ndarray]
    floats: list[np.ndarray]


class WordLayout:
    """The position of each of several tensors in a row of words.

    Small tensors of numbers are packed. Other tensors (large ones, text, complex
    numbers) are stored as they are.
    """

    def __init__(
        self,
        specs: Sequence[tf.TensorSpec],
        *,
        pads: bool = False,
        fewest: int = 1,
    ) -> None:
        """Plans the layout.

        Args:
          specs: The shape and dtype of each tensor; shapes are fully defined.
          pads: Whether to pack tensors of 1 or 2 bytes per element, too. Each of them
            is padded with zeros to whole words.
          fewest: The smallest number of packable tensors that are packed; fewer are
            stored as they are.
        """
        leaves = [_Leaf(spec, pads) for spec in specs]
        packs = sum(leaf.is_packable for leaf in leaves) >= fewest
        self._leaves = leaves
        self._packed = [i for i, x in enumerate(leaves) if x.is_packable and packs]
        self._separate = [i for i in range(len(leaves)) if i not in self._packed]
        self._words = [leaves[i].words for i in self._packed]

    @property
    def stored_specs(self) -> list[tf.TensorSpec]:
        """The specs of the stored tensors: the unpacked ones in order, then words."""
        specs = [self._leaves[i].spec for i in self._separate]
        if self._packed:
            specs.append(tf.TensorSpec([sum(self._words)], WORD))
        return specs

    def to_words(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Packs tensors.

        Args:
          values: A tensor `[..., *shape]` for each spec.

        Returns:
          A tensor `[..., *shape]` for each of `stored_specs`.
        """
        stored = [values[i] for i in self._separate]
        if self._packed:
            words = [self._leaves[i].to_words(values[i]) for i in self._packed]
            stored.append(tf.bitcast(tf.concat(words, axis=-1), WORD))
        return stored

    def make_arrays(self) -> WordArrays:
        """Returns new NumPy arrays, filled with zeros, for a tensor of each spec."""
        specs = self.stored_specs
        stored = [np.zeros(spec.shape, spec.dtype.as_numpy_dtype) for spec in specs]
        values = dict(zip(self._separate, stored, strict=False))
        floats: list[np.ndarray] = []
        start, end_of_floats = 0, -1
        for i, size in zip(self._packed, self._words, strict=True):
            spec = self._leaves[i].spec
            values[i] = np.ndarray(
                tuple(spec.shape),
                spec.dtype.as_numpy_dtype,
                stored[-1],
                _WORD_BYTES * start,
            )
            if spec.dtype == tf.float32:
                run = floats.pop().size if start == end_of_floats else 0
                end_of_floats = start + size
                words = stored[-1][start - run : end_of_floats]
                floats.append(words.view(np.float32))
            elif spec.dtype.is_floating:
                floats.append(values[i])
            start += size
        floats += [
            values[i] for i in self._separate if self._leaves[i].spec.dtype.is_floating
        ]
        return WordArrays(stored, [values[i] for i in range(len(self._leaves))], floats)

    def from_words(self, stored: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Unpacks tensors.

        Args:
          stored: A tensor `[..., *shape]` for each of `stored_specs`.

        Returns:
          A tensor `[..., *shape]` for each spec.
        """
        values: dict[int, tf.Tensor] = dict(zip(self._separate, stored, strict=False))
        if self._packed:
            # On a GPU, TensorFlow can split float32, but not uint32.
            words = tf.bitcast(stored[-1], tf.float32)
            parts = tf.split(words, self._words, axis=-1)
            for i, words in zip(self._packed, parts, strict=True):
                values[i] = self._leaves[i].from_words(words)
        return [values[i] for i in range(len(self._leaves))]


class _Leaf:
    """Converts one tensor to words and back."""

    def __init__(self, spec: tf.TensorSpec, pads: bool) -> None:
        self.spec = spec
        dtype = spec.dtype
        self._size = math.prod(spec.shape)
        num_bytes = self._size * dtype.size
        is_number = dtype.is_floating or dtype.is_integer or dtype.is_bool
        self.is_packable = (
            is_number
            and not dtype.is_quantized
            and (pads or dtype.size >= _WORD_BYTES)
            and 0 < num_bytes <= _LARGEST_PACKED
        )
        self.words = -(-num_bytes // _WORD_BYTES)
        # TensorFlow cannot cast the bits of a bool.
        self._carrier = tf.uint8 if dtype.is_bool else dtype

    def to_words(self, value: tf.Tensor) -> tf.Tensor:
        """Returns words `[..., words]`, as float32, for a value `[..., *shape]`."""
        outer_rank = value.shape.rank - self.spec.shape.rank
        value = tf.cast(value, self._carrier)
        per_word = _WORD_BYTES // self._carrier.size
        if per_word > 1:
            value = _reshape_inner(value, outer_rank, [self._size])
            padding = self.words * per_word - self._size
            value = tf.pad(value, [*[[0, 0]] * outer_rank, [0, padding]])
            value = _reshape_inner(value, outer_rank, [self.words, per_word])
        if value.dtype != tf.float32:
            value = tf.bitcast(value, tf.float32)
        return _reshape_inner(value, outer_rank, [self.words])

    def from_words(self, words: tf.Tensor) -> tf.Tensor:
        """Returns a value `[..., *shape]` for its words `[..., words]`, as float32."""
        outer_rank = words.shape.rank - 1
        per_element = self._carrier.size // _WORD_BYTES
        if per_element:
            # Before the cast: a GPU copies int32 to the host to reshape it.
            inner = [per_element] if per_element > 1 else []
            words = _reshape_inner(words, outer_rank, [*self.spec.shape, *inner])
        value = words
        if self._carrier != tf.float32:
            value = tf.bitcast(words, self._carrier)
        if not per_element:
            per_word = _WORD_BYTES // self._carrier.size
            value = _reshape_inner(value, outer_rank, [self.words * per_word])
            value = value[..., : self._size]
            value = _reshape_inner(value, outer_rank, self.spec.shape)
        return tf.cast(value, self.spec.dtype)


def _reshape_inner(tensor: tf.Tensor, outer_rank: int, shape: Any) -> tf.Tensor:
    """Reshapes the dimensions of `tensor` after the first `outer_rank`."""
    shape = list(shape)
    outer, inner = tensor.shape[:outer_rank], tensor.shape[outer_rank:]
    if inner == shape:
        return tensor
    if outer.is_fully_defined():
        return tf.reshape(tensor, [*outer, *shape])
    outer = tf.shape(tensor)[:outer_rank]
    return tf.reshape(tensor, tf.concat([outer, shape], axis=0))
