"""Random numbers from stateless seeds, which each owner draws from its generator.

The owner of a random stream (a loop, a policy's public methods, a buffer) holds a
`tf.random.Generator`, which checkpoints save. Everything inside the owner takes a
*seed*, an integer tensor of shape `[2]`, and is a pure function of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import (
    accelerators,
    context,
    replicas,
    variable_substitution,
)

# The algorithm is named, because the default is several times slower under XLA on a
# CPU.
ALGORITHM = "philox"
_PHILOX = 1
# The number by which a `tf.random.Generator` advances its counter for each number.
_COUNTS_A_NUMBER = 256
# Up to this many numbers are drawn from Philox's words directly.
_FEW = 16
_UNSIGNED = {tf.int32: tf.uint32, tf.int64: tf.uint64}
_GOLDEN_RATIO = 0x9E3779B9
# The polynomials of `_erfinv` for the middle and the tails, highest power first.
_ERFINV_COEFFICIENTS = (
    (2.81022636e-08, -2.00214257e-04),
    (3.43273939e-07, 1.00950558e-04),
    (-3.5233877e-06, 1.34934322e-03),
    (-4.39150654e-06, -3.67342844e-03),
    (2.1858087e-04, 5.73950773e-03),
    (-1.25372503e-03, -7.6224613e-03),
    (-4.17768164e-03, 9.43887047e-03),
    (2.46640727e-01, 1.00167406e00),
    (1.50140941e00, 2.83297682e00),
)


def make_generator(seed: int | None = None) -> tf.random.Generator:
    """Returns a generator for `seed`; None follows `tf.random.set_seed`.

    If there is no global seed either, the stream starts from the system's entropy.
    """
    if seed is None:
        # A stateful op is seeded by `tf.random.set_seed` if that was called, and by
        # entropy if not.
        seed = int(tf.random.uniform([], maxval=tf.int64.max, dtype=tf.int64))
    return tf.random.Generator.from_seed(seed, alg=ALGORITHM)


def draw_number() -> int:
    """Returns a number for a seed that the user did not give; see `make_generator`."""
    return int(next_seed(make_generator())[0])


def next_seed(generator: tf.random.Generator) -> tf.Tensor:
    """Draws the next stateless seed, int64 `[2]`, and advances the generator."""
    if variable_substitution.active() is None and not accelerators.in_graph():
        state = generator.skip(2)
    else:
        # The generator's own step, in tensors; it takes no number from the host.
        state = generator.state.read_value()
        generator.state.assign(tf.add(state, [2 * _COUNTS_A_NUMBER, 0, 0]))
    # The state is the counter and the key.
    state = tf.bitcast(state, tf.uint64)
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[2], dtype=tf.int64, key=state[2:], counter=state[:2], alg=_PHILOX
    )


def as_seed(seed: int | tf.Tensor) -> tf.Tensor:
    """Returns `seed` as a stateless seed, shape `[2]`; a number `s` gives `[s, 0]`."""
    seed = tf.convert_to_tensor(seed)
    if seed.dtype not in (tf.int32, tf.int64) or not any(
        seed.shape.is_compatible_with(shape) for shape in ([], [2])
    ):
        raise ValueError(
            "seed: expected an integer or an integer tensor of shape [2], got dtype "
            f"{seed.dtype.name} and shape {seed.shape}; draw one with "
            "tfrl.utils.random_numbers.seeds.next_seed(generator)."
        )
    return tf.stack([seed, tf.zeros_like(seed)]) if seed.shape.rank == 0 else seed


def split_seed(seed: int | tf.Tensor, num: int) -> list[tf.Tensor]:
    """Derives `num` independent stateless seeds from one, deterministically."""
    return accelerators.unstack(
        tf.random.split(as_seed(seed), num=num, alg=ALGORITHM), num=num, axis=0
    )


def uniform(
    seed: tf.Tensor,
    shape: tf.types.experimental.TensorLike,
    minval: tf.types.experimental.TensorLike = 0,
    maxval: tf.types.experimental.TensorLike = None,
    dtype: tf.DType = tf.float32,
    *,
    batch_axis: int | None = 0,
) -> tf.Tensor:
    """Returns uniform numbers in `[minval, maxval)`, a pure function of `seed`.

    For floats `maxval` is 1 if not given. The seed is used directly as Philox's key and
    counter. `tf.random.stateless_uniform` scrambles the seed first, which takes thirty
    operations; even without that, different seeds give different numbers. The same seed
    gives the same numbers whether XLA compiles the graph or not (float32, float64 and
    integers).

    Args:
      seed: Integers `[2]`.
      shape: The shape of the result.
      minval: The lower bound, included.
      maxval: The upper bound, excluded; required for integers.
      dtype: A float or integer dtype.
      batch_axis: The dimension of `shape` that counts the examples of a batch, or None.
        If several replicas share the batch, each gets the numbers of its own examples;
        with None all get the same numbers.
    """
    if batch_axis is not None and replicas.are_several():
        return replicas.of_whole_batch(
            lambda whole: uniform(seed, whole, minval, maxval, dtype, batch_axis=None),
            shape,
            batch_axis,
        )
    random, shape = _random_of(seed), _known(shape)
    if dtype.is_integer:
        return _integers(shape, minval, maxval, dtype, random)
    unit = _unit_interval(shape, dtype, random)
    if maxval is None and isinstance(minval, int) and minval == 0:
        return unit
    minval, maxval = (
        tf.cast(minval, dtype),
        tf.cast(1 if maxval is None else maxval, dtype),
    )
    return unit * (maxval - minval) + minval


def words(seed: tf.Tensor, shape: tf.types.experimental.TensorLike) -> tf.Tensor:
    """Returns random uint32 words, a pure function of `seed`; see `uniform`.

    Args:
      seed: Integers `[2]`.
      shape: The shape of the result.
    """
    return _hashed_words(_known(shape), _random_of(seed))


def normal(
    seed: tf.Tensor,
    shape: tf.types.experimental.TensorLike,
    dtype: tf.DType = tf.float32,
    *,
    batch_axis: int | None = 0,
) -> tf.Tensor:
    """Returns standard normal numbers, a pure function of `seed`.

    They are computed from uniform numbers by the inverse of the distribution function,
    so a normal number costs little more than a uniform number. The same seed gives the
    same numbers whether XLA compiles the graph or not, up to a relative difference of
    1e-6. As there are 2**23 different uniform numbers, the absolute value of a float32
    is at most 5.3 (and of a float64 8.2).

    Args:
      seed: Integers `[2]`.
      shape: The shape of the result.
      dtype: A float dtype; numbers of dtypes narrower than float32 are rounded from
        float32.
      batch_axis: See `uniform`.
    """
    wide = dtype if dtype == tf.float64 else tf.float32
    return tf.cast(
        normal_of(uniform(seed, shape, dtype=wide, batch_axis=batch_axis)), dtype
    )


def normal_of(unit: tf.Tensor) -> tf.Tensor:
    """Returns the standard normal numbers of uniform numbers; see `normal`.

    Args:
      unit: Results of `uniform` in [0, 1), float32 or float64.
    """
    # The middles of the intervals between the uniform numbers: exact, never -1 or 1.
    spacing = 2.0**-51 if unit.dtype == tf.float64 else 2.0**-22
    centred = 2 * unit - (1 - spacing / 2)
    return math.sqrt(2) * _erfinv(centred)


def _random_of(seed: tf.Tensor) -> dict[str, Any]:
    """Returns the arguments of TensorFlow's kernels: the seed as key and counter."""
    counter = tf.bitcast(tf.cast(seed, tf.int64), tf.uint64)
    return {"key": counter[:1], "counter": counter, "alg": _PHILOX}


def _erfinv(x: tf.Tensor) -> tf.Tensor:
    """Returns the inverse of the error function for `x` in (-1, 1).

    XLA's own function of float32 takes the logarithm of `1 - x * x`, and the rounding
    of this square near 1 gives errors of 6e-6. This function uses the same
    approximation (Giles, "Approximating the erfinv function", 2012) with the exact
    product.
    """
    if x.dtype != tf.float32 or not context.in_xla_graph():
        return tf.math.erfinv(x)
    w = -tf.math.log((1 - x) * (1 + x))
    is_middle = w < 5
    w = tf.where(is_middle, w - 2.5, tf.sqrt(w) - 3)
    result = tf.zeros_like(x)
    for middle, tail in _ERFINV_COEFFICIENTS:
        result = result * w + tf.where(is_middle, middle, tail)
    return result * x


def _integers(
    shape: tf.types.experimental.TensorLike,
    minval: tf.types.experimental.TensorLike,
    maxval: tf.types.experimental.TensorLike,
    dtype: tf.DType,
    random: dict[str, Any],
) -> tf.Tensor:
    if accelerators.in_graph() and tf.is_tensor(maxval):
        return _integers_on_accelerator(shape, minval, maxval, dtype, random)
    minval, maxval = tf.cast(minval, dtype), tf.cast(maxval, dtype)

    def few() -> tf.Tensor:
        return tf.raw_ops.StatelessRandomUniformIntV2(
            shape=shape, minval=minval, maxval=maxval, **random
        )

    def many() -> tf.Tensor:
        # The high half of word * span, which is even up to 2**-32 * span.
        words = tf.cast(_hashed_words(shape, random), tf.uint64)
        span = tf.cast(maxval - minval, tf.uint64)
        high = tf.bitwise.right_shift(words * span, tf.constant(32, tf.uint64))
        return minval + tf.cast(high, tf.int32)

    return few() if dtype != tf.int32 else _by_number(shape, few, many)


def _integers_on_accelerator(
    shape: tf.types.experimental.TensorLike,
    minval: tf.types.experimental.TensorLike,
    maxval: tf.Tensor,
    dtype: tf.DType,
    random: dict[str, Any],
) -> tf.Tensor:
    """Returns the numbers of `_integers` without a bound in the host's memory."""
    minval = tf.cast(minval, tf.int64)
    span = tf.cast(tf.cast(maxval, tf.int64) - minval, tf.uint64)

    def few() -> tf.Tensor:
        words = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=shape, dtype=_UNSIGNED[dtype], **random
        )
        return tf.cast(words, tf.uint64) % span

    def many() -> tf.Tensor:
        words = tf.cast(_hashed_words(shape, random), tf.uint64)
        return tf.bitwise.right_shift(words * span, tf.constant(32, tf.uint64))

    offset = few() if dtype != tf.int32 else _by_number(shape, few, many)
    return tf.cast(minval + tf.cast(offset, tf.int64), dtype)


def _unit_interval(
    shape: tf.types.experimental.TensorLike, dtype: tf.DType, random: dict[str, Any]
) -> tf.Tensor:
    """Returns uniform floats in [0, 1), the same with XLA and without."""

    def few() -> tf.Tensor:
        if dtype == tf.float64 and context.in_xla_graph():
            pairs = tf.concat([tf.convert_to_tensor(shape, tf.int32), [2]], axis=0)
            return _as_doubles(_philox_words(pairs, random))
        if dtype != tf.float32 or not context.in_xla_graph():
            return tf.raw_ops.StatelessRandomUniformV2(
                shape=shape, dtype=dtype, **random
            )
        # XLA would make floats from the high bits, but TensorFlow's kernel takes the
        # low bits.
        low_bits = tf.constant(0x7FFFFF, tf.uint32)
        return _as_floats(
            tf.bitwise.bitwise_and(_philox_words(shape, random), low_bits)
        )

    def many() -> tf.Tensor:
        words = _hashed_words(shape, random)
        return _as_floats(tf.bitwise.right_shift(words, tf.constant(9, tf.uint32)))

    return few() if dtype != tf.float32 else _by_number(shape, few, many)


def _known(shape: tf.types.experimental.TensorLike) -> Any:
    """Returns a shape as a list of integers if the graph determines it.

    Otherwise the result is `shape`. `tf.get_static_value` does not know an element of
    `tf.shape`, but the inference of shapes does.
    """
    static = _static(shape)
    if static is not None:
        return static
    inferred = tf.fill(shape, False).shape
    return inferred.as_list() if inferred.is_fully_defined() else shape


def _static(shape: tf.types.experimental.TensorLike) -> list[int] | None:
    value = tf.get_static_value(tf.convert_to_tensor(shape, tf.int32))
    return None if value is None else value.tolist()


def _by_number(
    shape: tf.types.experimental.TensorLike,
    few: Callable[[], tf.Tensor],
    many: Callable[[], tf.Tensor],
) -> tf.Tensor:
    """Calls `many` for more than `_FEW` numbers, otherwise `few`."""
    static = _static(shape)
    if static is None:
        return tf.cond(tf.reduce_prod(shape) > _FEW, many, few)
    return many() if math.prod(static) > _FEW else few()


def _hashed_words(
    shape: tf.types.experimental.TensorLike, random: dict[str, Any]
) -> tf.Tensor:
    """Returns random uint32 words: hashes of their indices, keyed by Philox words.

    On a CPU, XLA takes thirty times as long to compute Philox words. This is SplitMix's
    scheme (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    2014) with the mixer lowbias32 (C. Wellons, "Prospecting for hash functions", 2018).
    """
    # tf.unstack has no kernel for these words on a GPU.
    key = _philox_words([2], random)
    # TensorFlow folds this into a constant if the shape is static.
    index = tf.reshape(tf.range(tf.reduce_prod(shape)), shape)
    return tf.bitwise.bitwise_xor(hashed(tf.cast(index, tf.uint32), key[0]), key[1])


def hashed(x: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Returns a hash of each number, keyed by `key`; all are uint32.

    Different numbers have different hashes under the same key.
    """
    x = x * np.uint32(_GOLDEN_RATIO) + key
    xor, shift = tf.bitwise.bitwise_xor, tf.bitwise.right_shift
    x = xor(x, shift(x, np.uint32(16))) * np.uint32(0x7FEB352D)
    x = xor(x, shift(x, np.uint32(15))) * np.uint32(0x846CA68B)
    return xor(x, shift(x, np.uint32(16)))


def _philox_words(
    shape: tf.types.experimental.TensorLike, random: dict[str, Any]
) -> tf.Tensor:
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape, dtype=tf.uint32, **random
    )


def _as_floats(mantissa: tf.Tensor) -> tf.Tensor:
    """Converts 23 random bits to floats in [0, 1), exactly."""
    return tf.cast(tf.cast(mantissa, tf.int32), tf.float32) * 2.0**-23


def _as_doubles(words: tf.Tensor) -> tf.Tensor:
    """Converts words `[..., 2]` to doubles in [0, 1) of 52 bits, as TensorFlow does."""
    low, high = words[..., 1], words[..., 0] & tf.constant(0xFFFFF, tf.uint32)
    bits = tf.stack([low, high | tf.constant(0x3FF00000, tf.uint32)], axis=-1)
    return tf.bitcast(bits, tf.float64) - tf.constant(1.0, tf.float64)
