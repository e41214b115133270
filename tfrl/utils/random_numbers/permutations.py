"""Random permutations from stateless seeds, without sorting.

On a CPU, XLA sorts random keys very slowly: sorting takes over a hundred times as long
as `permutations`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

_ROUNDS = 8
# With fewer values in one half, there would be too few functions of it to mix the other
# half.
_SMALLEST_HALF = 8
# The hashes' 16 high bits are scaled to a half's values, which must be fewer.
_LARGEST_HALF = 2**16


def permutations(seed: tf.Tensor, number: int, length: int) -> tf.Tensor:
    """Returns random permutations of `0, ..., length - 1`, a pure function of `seed`.

    They come from a Feistel network (Luby and Rackoff, "How to construct pseudorandom
    permutations from pseudorandom functions", 1988) of eight rounds. With `length =
    a * b`, index `i` has the halves `i // b` and `i % b`. Each round adds a keyed hash
    of one half to the other, modulo the other's size. Lengths with no divisor between 8
    and their square root (primes, say) are shuffled by sorting random keys instead.

    The same seed gives the same permutations in a plain graph, under XLA and under
    `tf.vectorized_map`.

    Args:
      seed: Integers `[2]`; see `utils.random_numbers.seeds`.
      number: The number of permutations to return.
      length: The length of each permutation.

    Returns:
      int32 `[number, length]`; each row holds every number once.

    Raises:
      ValueError: `number` or `length` is not positive.
      TypeError: One of them is not an integer.
    """
    number_checks.check_sizes(number=number, length=length)
    smaller = _divisor_near_root(length)
    if smaller < _SMALLEST_HALF or length // smaller >= _LARGEST_HALF:
        keys = seeds.uniform(seed, [number, length])
        return tf.argsort(keys, axis=1, stable=True)
    return _feistel(seed, number, smaller, length // smaller)


def _divisor_near_root(length: int) -> int:
    """Returns the largest divisor up to the square root."""
    return next(d for d in range(math.isqrt(length), 0, -1) if length % d == 0)


def _feistel(seed: tf.Tensor, number: int, rows: int, columns: int) -> tf.Tensor:
    """Returns permutations of `rows * columns` numbers, `[number, rows * columns]`."""
    keys = seeds.words(seed, [number, _ROUNDS])
    index = np.arange(rows * columns, dtype=np.uint32)[np.newaxis]
    halves = [
        tf.broadcast_to(tf.constant(half), [number, rows * columns])
        for half in (index // columns, index % columns)
    ]

    def two_rounds(i: tf.Tensor, halves: Any) -> tuple[tf.Tensor, Any]:
        row, column = halves
        row = _add(row, _function(column, keys[:, i, tf.newaxis], rows), rows)
        added = _function(row, keys[:, i + 1, tf.newaxis], columns)
        return i + 2, (row, _add(column, added, columns))

    # XLA compiles the rounds of a loop once. Without a loop, it would compile all of
    # them again into each operation that uses the permutations.
    _, (row, column) = accelerators.while_loop(
        lambda i, _: i < _ROUNDS, two_rounds, (tf.constant(0), tuple(halves))
    )
    return tf.cast(row * np.uint32(columns) + column, tf.int32)


def _function(half: tf.Tensor, key: tf.Tensor, size: int) -> tf.Tensor:
    """Returns a keyed hash of `half`, in `[0, size)`."""
    hashed = seeds.hashed(half, key)
    high = tf.bitwise.right_shift(hashed, tf.constant(16, tf.uint32))
    scaled = high * tf.constant(size, tf.uint32)
    return tf.bitwise.right_shift(scaled, tf.constant(16, tf.uint32))


def _add(half: tf.Tensor, addend: tf.Tensor, size: int) -> tf.Tensor:
    """Adds numbers in `[0, size)` modulo `size`; a division would take longer."""
    total = half + addend
    size = tf.constant(size, tf.uint32)
    return tf.where(total >= size, total - size, total)
