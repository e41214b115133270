"""Random numbers: one generator at the outside, stateless seeds inside.

The owner of a random stream (a loop, a policy's public shell, a buffer) holds a
`tf.random.Generator`, which checkpoints; everything inside takes a *seed*, an integer
tensor of shape `[2]`, and is a pure function of it.
"""

from __future__ import annotations

import tensorflow as tf

# Named, because the default is several times slower under XLA on a CPU.
ALGORITHM = "philox"
_PHILOX = 1


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
    operations, and different seeds give different numbers without. Compiled by XLA, the
    same seed gives other numbers.

    Args:
      seed: integers `[2]`.
      shape: of the result.
      minval: the lower bound, included.
      maxval: the upper bound, left out; needed for integers.
      dtype: a float or integer dtype.
    """
    counter = tf.bitcast(tf.cast(seed, tf.int64), tf.uint64)
    random = {"shape": shape, "key": counter[:1], "counter": counter, "alg": _PHILOX}
    if dtype.is_integer:
        return tf.raw_ops.StatelessRandomUniformIntV2(
            minval=tf.cast(minval, dtype), maxval=tf.cast(maxval, dtype), **random
        )
    unit = tf.raw_ops.StatelessRandomUniformV2(dtype=dtype, **random)
    if maxval is None and isinstance(minval, int) and minval == 0:
        return unit
    minval, maxval = (
        tf.cast(minval, dtype),
        tf.cast(1 if maxval is None else maxval, dtype),
    )
    return unit * (maxval - minval) + minval
