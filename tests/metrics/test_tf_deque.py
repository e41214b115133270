"""`TFDeque` against a `collections.deque`, in plain graphs and compiled ones."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfrl.metrics.tf_deque import TFDeque

RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(-9, 9, [40, 4]).astype(np.float32)
CHOSEN = RNG.random([40, 4]) < 0.4
CHOSEN[5:8] = True
CHOSEN[11:14] = False


def extender(deque, jit_compile, signature=None):
    @tf.function(jit_compile=jit_compile, input_signature=signature)
    def extend(values, where):
        deque.extend(values, where)

    return extend


@pytest.mark.parametrize(
    ("jit_compile", "max_len", "dtype", "shape"),
    [
        *((False, max_len, tf.float32, ()) for max_len in (1, 3, 4, 10)),
        (False, 3, tf.int64, ()),
        (False, 3, tf.float32, (2, 1)),
        (True, 3, tf.float32, (2, 1)),
        *(
            pytest.param(True, *case, marks=pytest.mark.slow)
            for case in (
                *((max_len, tf.float32, ()) for max_len in (1, 3, 4, 10)),
                (3, tf.int64, ()),
            )
        ),
    ],
)
def test_the_latest_chosen_values_are_held(max_len, dtype, shape, jit_compile):
    deque, model = TFDeque(max_len, dtype, shape), collections.deque(maxlen=max_len)
    extend = extender(deque, jit_compile)
    scale = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    for row, where in zip(NUMBERS, CHOSEN, strict=True):
        values = np.multiply.outer(row, scale)
        extend(tf.constant(values, dtype), tf.constant(where))
        model.extend(values[where])
        assert int(deque.length) == len(model)
        if model:
            got, expected = (
                sorted(map(np.ravel, d), key=list) for d in (deque.data.numpy(), model)
            )
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(deque.max(), np.max(model, axis=0))
            np.testing.assert_array_equal(deque.min(), np.min(model, axis=0))
    assert extend.experimental_get_tracing_count() == 1


def test_slots_are_the_same_compiled():
    """So that checkpoints go from one to the other."""
    plain, compiled = TFDeque(3, tf.float32), TFDeque(3, tf.float32)
    for deque, jit_compile in ((plain, False), (compiled, True)):
        extend = extender(deque, jit_compile)
        for row, where in zip(NUMBERS[:9], CHOSEN[:9], strict=True):
            extend(tf.constant(row), tf.constant(where))
    np.testing.assert_array_equal(plain.data, compiled.data)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_values_that_are_not_chosen_may_be_anything(jit_compile):
    deque = TFDeque(2, tf.float32)
    extend = extender(deque, jit_compile)
    extend(tf.constant([np.nan, 1, np.inf]), tf.constant([False, True, False]))
    assert (float(deque.mean()), float(deque.max()), int(deque.length)) == (1, 1, 1)
    extend(tf.constant([np.nan, np.inf, 2]), tf.constant([False, True, True]))
    np.testing.assert_array_equal(sorted(deque.data.numpy()), [2, np.inf])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_any_number_of_values_extend_it(jit_compile):
    deque = TFDeque(2, tf.int32)
    signature = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)]
    extend = extender(deque, jit_compile, signature)
    extend(tf.constant([1]), tf.constant([True]))
    extend(tf.constant([2, 3, 4]), tf.constant([True, True, False]))
    np.testing.assert_array_equal(sorted(deque.data.numpy()), [2, 3])
    extend(tf.zeros([0], tf.int32), tf.zeros([0], tf.bool))
    assert deque.length == 2


@pytest.mark.parametrize("jit_compile", [False, True])
def test_adding_reading_and_clearing_in_one_function(jit_compile):
    deque = TFDeque(2, tf.float32)

    @tf.function(jit_compile=jit_compile)
    def cycle(value):
        deque.clear()
        empty = deque.mean()
        deque.add(value)
        deque.add(value + 2)
        deque.add(value + 4)
        return empty, deque.mean(), deque.length

    for _ in range(2):
        np.testing.assert_array_equal(cycle(tf.constant(1.0)), [0, 4, 2])
