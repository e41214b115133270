"""Operations that vectorized maps support beyond TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops.parallel_for import pfor

from tfrl.compilation import vectorized_map_converters
from tfrl.utils.random_numbers import seeds

PHILOX = 1
KEYS = np.array([[1], [2**63 + 5], [0]], np.uint64)
# The last one's low half overflows within a draw of several blocks.
COUNTERS = np.array([[0, 0], [7, 2**40], [2**64 - 2, 3]], np.uint64)


def mapped(function, *arguments):
    """`function` of each row of the arguments, by a vectorized map, and by a loop."""

    @tf.function(autograph=False)
    def run(*arguments):
        with vectorized_map_converters.conversions():
            return tf.vectorized_map(
                lambda x: function(*x), arguments, fallback_to_while_loop=False
            )

    arguments = [tf.constant(a) for a in arguments]
    one_by_one = [function(*row) for row in zip(*arguments, strict=True)]
    return run(*arguments).numpy(), np.stack(one_by_one)


@pytest.mark.parametrize("number", [1, 4, 11])
def test_the_words_are_those_of_tensorflows_philox(number):
    words = vectorized_map_converters.philox_words(
        tf.constant(KEYS), tf.constant(COUNTERS), number
    )
    expected = [
        tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[number], dtype=tf.uint32, key=key, counter=counter, alg=PHILOX
        )
        for key, counter in zip(KEYS, COUNTERS, strict=True)
    ]
    np.testing.assert_array_equal(words, np.stack(expected))


@pytest.mark.parametrize("dtype", [tf.uint32, tf.int32, tf.uint64, tf.int64])
def test_full_integers_are_those_drawn_one_by_one(dtype):
    def draw(key, counter):
        return tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[3, 2], dtype=dtype, key=key, counter=counter, alg=PHILOX
        )

    together, alone = mapped(draw, KEYS, COUNTERS)
    np.testing.assert_array_equal(together, alone)


def test_numbers_of_an_unknown_shape_are_an_error():
    @tf.function(autograph=False)
    def run(key_of_each, size):
        def draw(key):
            return tf.raw_ops.StatelessRandomUniformFullIntV2(
                shape=[size], dtype=tf.uint32, key=key, counter=COUNTERS[0], alg=PHILOX
            )

        with vectorized_map_converters.conversions():
            return tf.vectorized_map(draw, key_of_each, fallback_to_while_loop=False)

    with pytest.raises(ValueError, match="got random numbers of a shape that is known"):
        run(KEYS, tf.constant(4))


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_integers_in_a_range_are_those_drawn_one_by_one(dtype):
    def draw(key, counter, low):
        return tf.raw_ops.StatelessRandomUniformIntV2(
            shape=[5],
            key=key,
            counter=counter,
            alg=PHILOX,
            minval=tf.cast(low, dtype),
            maxval=tf.constant(17, dtype),
        )

    together, alone = mapped(draw, KEYS, COUNTERS, [-3, 0, 5])
    np.testing.assert_array_equal(together, alone)


def test_draws_with_one_key_for_all_are_the_same_for_all():
    def draw(x):
        return x + tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[2], dtype=tf.uint32, key=KEYS[0], counter=COUNTERS[0], alg=PHILOX
        )

    together, alone = mapped(draw, np.array([0, 1], np.uint32))
    np.testing.assert_array_equal(together, alone)


def test_bits_are_cast_as_one_by_one():
    together, alone = mapped(
        lambda x: tf.bitcast(x, tf.uint64), np.array([[-1, 2], [3, 2**62]], np.int64)
    )
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("number", [3, 20])
def test_a_compiled_copy_gets_the_numbers_that_it_would_get_alone(number):
    rows = np.array([[1, 2], [-5, 2**60]], np.int64)

    @tf.function(autograph=False, jit_compile=True)
    def together(rows):
        with vectorized_map_converters.conversions():
            return tf.vectorized_map(lambda seed: seeds.uniform(seed, [number]), rows)

    alone = [seeds.uniform(tf.constant(row), [number]) for row in rows]
    np.testing.assert_array_equal(together(tf.constant(rows)), np.stack(alone))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(2, 3, 2), (16, 9, 4), (9, 16, 12), (1, 20, 1)]
)
def test_products_of_small_matrices(rows, terms, columns, transpose_a, transpose_b):
    random = np.random.default_rng(0)
    a = random.normal(size=(3, rows, terms)).astype(np.float32)
    b = random.normal(size=(3, terms, columns)).astype(np.float32)
    first = a.swapaxes(1, 2) if transpose_a else a
    second = b.swapaxes(1, 2) if transpose_b else b

    def multiply(x, y):
        return tf.matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)

    @tf.function(autograph=False, jit_compile=True)
    def run(*arguments):
        with vectorized_map_converters.conversions():
            return tf.vectorized_map(lambda x: multiply(*x), arguments)

    np.testing.assert_allclose(
        run(tf.constant(first), tf.constant(second)), a @ b, rtol=1e-4, atol=1e-5
    )


def test_a_product_with_one_matrix_for_all():
    a = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    b = np.array([[1, 2], [3, 4]], np.float32)
    together, alone = mapped(lambda x: tf.matmul(x, b), a)
    np.testing.assert_array_equal(together, alone)


def test_tensorflows_own_conversions_are_there_again_even_after_an_exception():
    before = dict(pfor._pfor_converter_registry)

    def fail():
        with vectorized_map_converters.conversions():
            assert pfor._pfor_converter_registry != before
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert pfor._pfor_converter_registry == before
