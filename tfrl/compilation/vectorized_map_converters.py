"""Adds converters of operations to `tf.vectorized_map`.

For an operation without a converter, `tf.vectorized_map` loops over the copies.
`conversions` adds converters for bit casts, for the random numbers of
`utils.random_numbers.seeds` and for the functions of `stablehlo`, and a converter that
multiplies many small matrices faster than TensorFlow's own.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals, stablehlo

_FEW = 8  # The largest number of rows, columns or terms that counts as few.
_LOW = 0xFFFFFFFF
# Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Philox4x32-10.
_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85


@tf.function(autograph=False)
def philox_words(key: tf.Tensor, counter: tf.Tensor, number: int) -> tf.Tensor:
    """Returns the random words of TensorFlow's Philox for each of many seeds.

    It is a `tf.function` because it has several hundred operations, which need not be
    traced again for every draw.

    Args:
      key: The keys, uint64 `[N, 1]`.
      counter: The counters, uint64 `[N, 2]`, the low half first.
      number: The number of words to return for each seed.

    Returns:
      uint32 `[N, number]`.
    """
    blocks = tf.range(-(-number // 4), dtype=tf.int64)
    blocks = tf.cast(blocks, tf.uint64)
    first = counter[:, :1] + blocks
    carried = tf.cast(first < blocks, tf.uint64)
    second = counter[:, 1:] + carried
    a, b, c, d = _low(first), _high(first), _low(second), _high(second)
    keys = [_low(key), _high(key)]
    xor = tf.bitwise.bitwise_xor
    for _ in range(_ROUNDS):
        p, q = (
            x * tf.constant(m, tf.uint64)
            for x, m in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a, b, c, d = (
            xor(xor(_high(q), b), keys[0]),
            _low(q),
            xor(xor(_high(p), d), keys[1]),
            _low(p),
        )
        keys = [
            _low(x + tf.constant(s, tf.uint64))
            for x, s in zip(keys, _KEY_STEPS, strict=True)
        ]
    words = tf.stack([a, b, c, d], axis=-1)
    words = tf.reshape(words, [words.shape[0], 4 * blocks.shape[0]])
    return tf.cast(words[:, :number], tf.uint32)


def _low(x: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(x, tf.constant(_LOW, tf.uint64))


def _high(x: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(x, tf.constant(32, tf.uint64))


def _whole_words(words: tf.Tensor, shape: list[int], dtype: tf.DType) -> tf.Tensor:
    """Converts words `[N, n]` to unsigned integers of `dtype`, `[N, *shape]`."""
    if dtype.size == 8:
        pairs = tf.cast(tf.reshape(words, [words.shape[0], -1, 2]), tf.uint64)
        shift = tf.constant(32, tf.uint64)
        words = tf.bitwise.left_shift(pairs[..., 1], shift) + pairs[..., 0]
    return tf.reshape(words, [words.shape[0], *shape])


def _draw(pfor_input: Any) -> tf.Tensor:
    """Returns the unsigned integers that a stateless random operation draws.

    Raises:
      ValueError: The graph does not determine their shape.
    """
    shape = tf.get_static_value(pfor_input.unstacked_input(0))
    if shape is None:
        raise ValueError(
            f"{pfor_input.op.name}: got random numbers of a shape that is known only "
            "when the program runs, expected a known shape, since several runs draw "
            "together; take the sizes from static shapes, such as `x.shape[0]`."
        )
    shape = shape.tolist()
    number_of_copies = pfor_input.pfor.loop_len_vector[0]
    key, counter = (_stacked(pfor_input.input(i), number_of_copies) for i in (1, 2))
    dtype = pfor_input.op.outputs[0].dtype
    words = philox_words(key, counter, math.prod(shape) * max(dtype.size // 4, 1))
    return _whole_words(words, shape, dtype)


def _stacked(wrapped: Any, number: tf.Tensor) -> tf.Tensor:
    if wrapped.is_stacked:
        return wrapped.t
    number = tf.cast(number, tf.int32)
    return tf.repeat(wrapped.t[tf.newaxis], number, axis=0)


def _convert_full_int(pfor_input: Any) -> Any:
    values = _draw(pfor_input)
    dtype = pfor_input.op.outputs[0].dtype
    return internals.pfor_wrap(
        values if values.dtype == dtype else tf.bitcast(values, dtype), True
    )


def _convert_int(pfor_input: Any) -> Any:
    values = _draw(pfor_input)
    dtype = pfor_input.op.outputs[0].dtype
    inner = [1] * (values.shape.rank - 1)
    low, high = (
        tf.reshape(bound.t, [-1, *inner]) if bound.is_stacked else bound.t
        for bound in (pfor_input.input(4), pfor_input.input(5))
    )
    span = tf.cast(high - low, values.dtype)
    return internals.pfor_wrap(low + tf.cast(values % span, dtype), True)


def _convert_bitcast(pfor_input: Any) -> Any:
    dtype = pfor_input.op.outputs[0].dtype
    return internals.pfor_wrap(tf.bitcast(pfor_input.stacked_input(0), dtype), True)


def _convert_matmul(pfor_input: Any) -> Any:
    """Multiplies many small matrices in the way that is fastest under XLA on a CPU.

    A product with few terms in its sums is written out, so that XLA fuses it with the
    operations around it. For longer sums, XLA's batched product is several times slower
    if a matrix has to be read by columns. So the matrix is transposed first, behind a
    barrier, without which XLA would undo the transposition. Products of such a matrix
    with vectors are not slower.
    """
    first, second = pfor_input.input(0), pfor_input.input(1)
    if not (first.is_stacked and second.is_stacked):
        return _usual_matmul_converter()(pfor_input)
    return internals.pfor_wrap(
        _products(
            first.t,
            second.t,
            pfor_input.get_attr("transpose_a"),
            pfor_input.get_attr("transpose_b"),
        ),
        True,
    )


def _products(
    a: tf.Tensor, b: tf.Tensor, transpose_a: bool, transpose_b: bool
) -> tf.Tensor:
    """Returns `tf.matmul` of `N` pairs of matrices, both given as `[N, ...]`."""
    if transpose_b:
        b = _transposed(b)
    if transpose_a and a.shape[1] > _FEW and b.shape[2] <= _FEW:
        columns = tf.unstack(b, axis=2)
        products = [tf.linalg.matvec(a, column, transpose_a=True) for column in columns]
        return tf.stack(products, axis=2)
    if transpose_a:
        a = _transposed(a)
    if a.shape[2] > _FEW:
        return tf.matmul(a, b)
    products = [a[:, :, k, None] * b[:, None, k, :] for k in range(a.shape[2])]
    return functools.reduce(tf.add, products)


def _transposed(matrices: tf.Tensor) -> tf.Tensor:
    (barred,) = internals.xla_optimization_barrier([tf.transpose(matrices, [0, 2, 1])])
    return barred


def _convert_program(pfor_input: Any) -> Any:
    """Calls a function in StableHLO once for the members of all copies.

    Raises:
      ValueError: It is not a function of members, so nobody knows its axis of copies.
    """
    function = stablehlo.function_of(pfor_input.op)
    if function is None:
        raise ValueError(
            f"{pfor_input.op.name}: got a program in StableHLO of a library of its "
            "own, expected one of tfrl's environments, since several runs are one "
            "program; train each run alone."
        )
    number = pfor_input.pfor.loop_len_vector[0]
    inputs = [
        _stacked(pfor_input.input(i), number) for i in range(pfor_input.num_inputs)
    ]
    results = stablehlo.merged(function, inputs)
    return [internals.pfor_wrap(result, True) for result in results]


_CONVERTERS = {
    "Bitcast": _convert_bitcast,
    "MatMul": _convert_matmul,
    "StatelessRandomUniformFullIntV2": _convert_full_int,
    "StatelessRandomUniformIntV2": _convert_int,
    "XlaCallModule": _convert_program,
}


@functools.cache
def _usual_matmul_converter() -> Any:
    return internals.pfor_converters()["MatMul"]


@contextlib.contextmanager
def conversions() -> Iterator[None]:
    """Lets `tf.vectorized_map` use this module's converters inside the context."""
    registry = internals.pfor_converters()
    _usual_matmul_converter()  # Looked up before it is replaced.
    before = {name: registry.get(name) for name in _CONVERTERS}
    registry.update(_CONVERTERS)
    try:
        yield
    finally:
        for name, converter in before.items():
            if converter is None:
                del registry[name]
            else:
                registry[name] = converter
