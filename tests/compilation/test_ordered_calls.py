"""`OrderedCalls`: Python functions in the order of the program."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import ordered_calls

NUMBER = tf.TensorSpec([], tf.int64)


def test_calls_are_in_the_order_of_the_program_also_in_loops():
    call = ordered_calls.OrderedCalls()
    seen = []

    def note(value):
        seen.append(int(value))
        return [len(seen)]

    @tf.function(autograph=False)
    def run(n):
        def body(i):
            # Two calls which take nothing from each other.
            call(note, [2 * i], [NUMBER])
            call(note, [2 * i + 1], [NUMBER])
            return i + 1

        tf.while_loop(lambda i: i < n, body, [0])
        [last] = call(note, [-1], [NUMBER])
        return last

    last = run(50)
    assert seen == [*range(100), -1]
    assert (last.shape, last.dtype, int(last)) == ((), tf.int64, 101)


def test_results_have_the_shapes_and_dtypes_of_their_specs():
    call = ordered_calls.OrderedCalls()
    specs = [tf.TensorSpec([2, None], tf.float32), NUMBER]

    def function(x):
        return [np.tile(x, (2, 1)), 3]

    def run(x):
        return call(function, [x], specs)

    x = tf.constant([1.0, 2.0, 3.0])
    compiled = tf.function(run).get_concrete_function(x)
    assert compiled.output_shapes == [tf.TensorShape([2, None]), tf.TensorShape([])]
    for tile, three in (run(x), compiled(x)):
        assert tile.numpy().tolist() == [[1.0, 2.0, 3.0]] * 2
        assert (int(three), three.dtype) == (3, tf.int64)


def test_exceptions_are_raised_as_they_are_and_quoted_in_a_graph():
    call = ordered_calls.OrderedCalls()

    def fail():
        raise RuntimeError("no server")

    with pytest.raises(RuntimeError, match="no server"):
        call(fail, [], [])
    with pytest.raises(tf.errors.OpError, match="RuntimeError: no server"):
        tf.function(lambda: call(fail, [], []))()
