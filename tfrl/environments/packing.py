"""Many small arrays as one, since every output of a `tf.numpy_function` has its price.

Handing an array to TensorFlow takes about as long as a step of a small environment. So
the arrays of a time step travel as the bytes of a single one, and are taken apart in
the graph, where that costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

_LARGEST_PACKED = 4096  # Bytes; copying more costs more than another output.
_WORD = 4


class Packing:
    """Packs arrays of known shapes and dtypes into one of int32 words, and back.

    Large arrays, and those of dtypes without a plain size, stay outputs of their own.
    """

    def __init__(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[tf.DType]):
        """Plans the layout.

        Args:
          shapes: The static shape of each array.
          dtypes: The dtype of each array.
        """
        self._shapes = [tuple(shape) for shape in shapes]
        self._dtypes = list(dtypes)
        sizes = [
            math.prod(shape) * dtype.size
            for shape, dtype in zip(self._shapes, self._dtypes, strict=True)
        ]
        self._packed = [
            i
            for i, dtype in enumerate(self._dtypes)
            if (dtype.is_floating or dtype.is_integer or dtype.is_bool)
            and sizes[i] <= _LARGEST_PACKED
        ]
        self._separate = [i for i in range(len(sizes)) if i not in self._packed]
        self._words = [-(-sizes[i] // _WORD) for i in self._packed]
        self._padding = [b"\0" * (-sizes[i] % _WORD) for i in self._packed]

    @property
    def dtypes(self) -> list[tf.DType]:
        """The dtypes of what `pack` returns."""
        return [tf.int32, *(self._dtypes[i] for i in self._separate)]

    def pack(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns all the small arrays as one, and then the others."""
        parts = []
        for i, padding in zip(self._packed, self._padding, strict=True):
            parts.append(arrays[i].tobytes())
            parts.append(padding)
        packed = np.frombuffer(b"".join(parts), np.int32)
        return [packed, *(arrays[i] for i in self._separate)]

    def unpack(self, outputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the tensors of what `pack` was given, with their static shapes."""
        packed, *separate = outputs
        packed.set_shape([sum(self._words)])
        tensors: dict[int, tf.Tensor] = dict(zip(self._separate, separate, strict=True))
        if self._packed:
            parts = tf.split(packed, self._words)
            for i, words in zip(self._packed, parts, strict=True):
                tensors[i] = self._from_words(words, self._dtypes[i], self._shapes[i])
        for i, shape in enumerate(self._shapes):
            tensors[i].set_shape(shape)
        return [tensors[i] for i in range(len(self._shapes))]

    def _from_words(
        self, words: tf.Tensor, dtype: tf.DType, shape: tuple[int, ...]
    ) -> tf.Tensor:
        carrier = tf.uint8 if dtype.is_bool else dtype
        if carrier.size > _WORD:
            words = tf.reshape(words, [-1, carrier.size // _WORD])
        values = words if carrier == tf.int32 else tf.bitcast(words, carrier)
        if carrier.size < _WORD:
            values = tf.reshape(values, [-1])[: math.prod(shape)]
        if dtype.is_bool:
            values = tf.cast(values, tf.bool)
        return values if len(shape) == 1 else tf.reshape(values, shape)
