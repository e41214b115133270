"""Random numbers: one generator at the outside, stateless seeds inside.

The owner of a random stream (a loop, a policy's public shell, a buffer) holds a
`tf.random.Generator`, which checkpoints; everything inside takes a *seed*, an integer
tensor of shape `[2]`, and is a pure function of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.utils import host_calls

# Named, because the default is several times slower under XLA on a CPU.
ALGORITHM = "philox"
_PHILOX = 1
# So many floats, or fewer, come straight from the generator's words.
_FEW = 64


def make_generator(seed: int | None = None) -> tf.random.Generator:
    """Returns a generator for `seed`; None follows `tf.random.set_seed`.

    Without a global seed either, the stream starts from the system's entropy.
    """
    if seed is None:
        # A stateful op is seeded by `tf.random.set_seed` if that was called, and by
        # entropy if not.
        seed = int(tf.random.uniform([], maxval=tf.int64.max, dtype=tf.int64))
    return tf.random.Generator.from_seed(seed, alg=ALGORITHM)


def next_seed(generator: tf.random.Generator) -> tf.Tensor:
    """Draws the next stateless seed, int64 `[2]`, and advances the generator."""
    return generator.uniform_full_int([2], dtype=tf.int64)


def as_seed(seed: int | tf.Tensor) -> tf.Tensor:
    """Returns `seed` as a stateless seed, shape `[2]`; a number `s` gives `[s, 0]`."""
    seed = tf.convert_to_tensor(seed)
    if seed.dtype not in (tf.int32, tf.int64) or not any(
        seed.shape.is_compatible_with(shape) for shape in ([], [2])
    ):
        raise ValueError(
            "seed: expected an integer or an integer tensor of shape [2], got dtype "
            f"{seed.dtype.name} and shape {seed.shape}; draw one with "
            "tfrl.utils.seeds.next_seed(generator)."
        )
    return tf.stack([seed, tf.zeros_like(seed)]) if seed.shape.rank == 0 else seed


def split_seed(seed: int | tf.Tensor, num: int) -> list[tf.Tensor]:
    """Derives `num` independent stateless seeds from one, deterministically."""
    return tf.unstack(
        tf.random.split(as_seed(seed), num=num, alg=ALGORITHM), num=num, axis=0
    )


def uniform(
    seed: tf.Tensor,
    shape: tf.types.experimental.TensorLike,
    minval: tf.types.experimental.TensorLike = 0,
    maxval: tf.types.experimental.TensorLike = None,
    dtype: tf.DType = tf.float32,
) -> tf.Tensor:
    """Uniform numbers in `[minval, maxval)` as a pure function of `seed`.

    For floats `maxval` is 1 if not given. The seed is Philox's key and counter as it
    is: scrambling it first, as `tf.random.stateless_uniform` does, takes thirty
    operations, and different seeds give different numbers without. The same seed gives
    the same numbers whether XLA compiles the graph or not (float32 and integers).

    Args:
      seed: integers `[2]`.
      shape: of the result.
      minval: the lower bound, included.
      maxval: the upper bound, left out; needed for integers.
      dtype: a float or integer dtype.
    """
    counter = tf.bitcast(tf.cast(seed, tf.int64), tf.uint64)
    random = {"key": counter[:1], "counter": counter, "alg": _PHILOX}
    if dtype.is_integer:
        return tf.raw_ops.StatelessRandomUniformIntV2(
            shape=shape,
            minval=tf.cast(minval, dtype),
            maxval=tf.cast(maxval, dtype),
            **random,
        )
    unit = _unit_interval(shape, dtype, random)
    if maxval is None and isinstance(minval, int) and minval == 0:
        return unit
    minval, maxval = (
        tf.cast(minval, dtype),
        tf.cast(1 if maxval is None else maxval, dtype),
    )
    return unit * (maxval - minval) + minval


def _unit_interval(
    shape: tf.types.experimental.TensorLike, dtype: tf.DType, random: dict[str, Any]
) -> tf.Tensor:
    """Uniform floats in [0, 1), the same in a graph that XLA compiles and in others."""
    if dtype != tf.float32:
        return tf.raw_ops.StatelessRandomUniformV2(shape=shape, dtype=dtype, **random)
    static = tf.get_static_value(tf.convert_to_tensor(shape, tf.int32))
    if static is not None and math.prod(static) > _FEW:
        return _many_floats(tuple(static), random)
    if not host_calls.in_xla_graph():
        return tf.raw_ops.StatelessRandomUniformV2(shape=shape, dtype=dtype, **random)
    # XLA would make floats of the high bits, TensorFlow's own kernel takes the low.
    words = _philox_words(shape, random)
    return _as_floats(words & tf.constant(0x7FFFFF, tf.uint32))


def _many_floats(shape: tuple[int, ...], random: dict[str, Any]) -> tf.Tensor:
    """Hashes the index of each float with two words of Philox.

    On a CPU XLA takes thirty times as long for Philox's words themselves. The hash is
    two rounds of lowbias32 (C. Wellons, "Prospecting for hash functions", 2018).
    """
    key = _philox_words([2], random)
    size = math.prod(shape)
    # Multiplied by the golden ratio, so that successive indices differ in many bits.
    index = (np.arange(size, dtype=np.uint64) * 0x9E3779B9).astype(np.uint32)
    words = _lowbias32(tf.constant(index.reshape(shape)) + key[0])
    words = _lowbias32(tf.bitwise.bitwise_xor(words, key[1]))
    return _as_floats(tf.bitwise.right_shift(words, tf.constant(9, tf.uint32)))


def _philox_words(
    shape: tf.types.experimental.TensorLike, random: dict[str, Any]
) -> tf.Tensor:
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape, dtype=tf.uint32, **random
    )


def _lowbias32(x: tf.Tensor) -> tf.Tensor:
    shift = tf.bitwise.right_shift
    x = tf.bitwise.bitwise_xor(x, shift(x, np.uint32(16))) * np.uint32(0x7FEB352D)
    x = tf.bitwise.bitwise_xor(x, shift(x, np.uint32(15))) * np.uint32(0x846CA68B)
    return tf.bitwise.bitwise_xor(x, shift(x, np.uint32(16)))


def _as_floats(mantissa: tf.Tensor) -> tf.Tensor:
    """Floats in [0, 1) of 23 random bits."""
    one_to_two = tf.bitwise.bitwise_or(mantissa, tf.constant(0x3F800000, tf.uint32))
    return tf.bitcast(one_to_two, tf.float32) - 1.0
