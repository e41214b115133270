"""Fast functions give the results of `tf.function`."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import fast_function
from tfrl.utils import common

TF_FUNCTION = type(tf.function(lambda: None))


class Pair(NamedTuple):
    left: tf.Tensor
    right: tf.Tensor


@pytest.fixture
def looked_up(monkeypatch):
    """Counts the calls that went through TensorFlow's own look-up."""
    calls = []
    own = TF_FUNCTION._call

    def counted(self, *args, **kwargs):
        calls.append(self)
        return own(self, *args, **kwargs)

    monkeypatch.setattr(TF_FUNCTION, "_call", counted)
    return calls


def repeat(function, *args, times=5, **kwargs):
    return [function(*args, **kwargs) for _ in range(times)]


def test_a_trace_is_looked_up_twice_and_then_known(looked_up):
    add = fast_function.fast_function(lambda pair: pair.left + pair.right)

    results = repeat(add, Pair(tf.constant(1), tf.constant(2)), times=10)

    assert [int(result) for result in results] == [3] * 10
    assert len(looked_up) == 2
    assert add.experimental_get_tracing_count() == 1


def test_shapes_dtypes_and_classes_have_traces_of_their_own():
    kind = fast_function.fast_function(lambda x: tf.constant(str(x)))

    arguments = [
        tf.constant(1),
        tf.constant(1.0),
        tf.constant([1]),
        (tf.constant(1),),
        [tf.constant(1)],
        {"a": tf.constant(1)},
        {"b": tf.constant(1)},
        Pair(tf.constant(1), tf.constant(1)),
        (tf.constant(1), tf.constant(1)),
        None,
    ]
    for _ in range(4):
        assert len({kind(x).numpy() for x in arguments}) == len(arguments)
    assert kind.experimental_get_tracing_count() == len(arguments)


def test_tensors_go_to_the_parameters_they_were_given_for():
    @fast_function.fast_function
    def subtract(a, b, c=None):
        return {"difference": a - b["x"], "rest": (b["y"], c)}

    a, x, y = map(tf.constant, (5, 2, 1))
    calls = [
        lambda: subtract(a, {"x": x, "y": y}),
        lambda: subtract(b={"y": y, "x": x}, a=a),
        lambda: subtract(a, c=y, b={"x": x, "y": x}),
        lambda: subtract(x, {"x": x, "y": x}),
    ]
    for _ in range(4):
        results = [call() for call in calls]
        assert [int(r["difference"]) for r in results] == [3, 3, 3, 0]
        assert [int(r["rest"][0]) for r in results] == [1, 1, 2, 2]
        assert [r["rest"][1] is None for r in results] == [True, True, False, True]


def test_keyword_arguments_are_no_last_positional_one():
    @fast_function.fast_function
    def count(*args, **kwargs):
        return tf.constant([len(args), len(kwargs)])

    a, b = tf.constant(1), tf.constant(2)
    for _ in range(4):
        assert count((a,), {"b": b}).numpy().tolist() == [2, 0]
        assert count(a, b=b).numpy().tolist() == [1, 1]


def test_arrays_are_tensors_of_the_same_trace(looked_up):
    double = fast_function.fast_function(lambda pair: pair.left + 2 * pair.right)
    array = np.array([1, 2], np.int32)
    for left in (array, tf.constant(array)):
        for result in repeat(double, Pair(left, array)):
            assert result.numpy().tolist() == [3, 6]
    assert len(looked_up) == 4
    assert double.experimental_get_tracing_count() == 1
    array[0] = 5
    assert double(Pair(array, array)).numpy().tolist() == [15, 6]
    assert len(looked_up) == 4


def test_arrays_that_are_no_tensors_are_refused_by_tensorflow():
    same = fast_function.fast_function(lambda x: x)
    for _ in range(3):
        with pytest.raises((TypeError, ValueError)):
            same(np.array([object()]))


def test_variables_are_read_and_written_and_watched():
    weight = tf.Variable(2.0)

    @fast_function.fast_function
    def scale(x):
        weight.assign_add(1.0)
        return weight * x

    x = tf.constant(3.0)
    assert [float(y) for y in repeat(scale, x, times=4)] == [9.0, 12.0, 15.0, 18.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scale(x)
    assert [float(g) for g in tape.gradient(y, [weight, x])] == [3.0, 7.0]


def test_variables_may_be_made_by_the_first_call():
    made = []

    @fast_function.fast_function
    def count(x):
        if not made:
            made.append(tf.Variable(0))
        return made[0].assign_add(x)

    results = repeat(count, tf.constant(1), times=4)
    assert [int(n) for n in results] == [1, 2, 3, 4]
    assert len(made) == 1


def test_python_values_arrays_and_variables_are_told_apart_by_tensorflow():
    double = fast_function.fast_function(lambda x: x * 2)
    variable = tf.Variable(4)

    for _ in range(4):
        assert int(double(3)) == 6
        assert int(double(5)) == 10
        assert int(double(variable)) == 8
    variable.assign(7)
    assert int(double(variable)) == 14


def test_shapes_that_differ_are_relaxed():
    total = common.function(lambda x: tf.reduce_sum(x))

    for _ in range(3):
        for n in range(1, 90):
            assert int(total(tf.ones([n], tf.int32))) == n

    assert total.experimental_get_tracing_count() == 2
    assert len(total._fast_paths) <= fast_function._MOST_TRACES + 1


def test_running_functions_eagerly_is_respected():
    eager = fast_function.fast_function(lambda x: tf.constant(tf.executing_eagerly()))
    x = tf.constant(1)
    assert not any(repeat(eager, x))
    tf.config.run_functions_eagerly(True)
    try:
        assert eager(x)
    finally:
        tf.config.run_functions_eagerly(False)
    assert not eager(x)


def test_it_is_part_of_an_outer_function():
    inner = fast_function.fast_function(lambda x: x + 1)
    outer = tf.function(lambda x: inner(inner(x)))

    assert [int(y) for y in repeat(outer, tf.constant(1))] == [3] * 5
    assert inner.experimental_get_tracing_count() == 1


def test_an_error_of_the_graph_is_raised():
    check = fast_function.fast_function(lambda x: tf.debugging.check_numerics(x, "!"))
    repeat(check, tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        check(tf.constant(float("nan")))


class Module(tf.Module):
    def __init__(self, offset):
        super().__init__()
        self.offset = tf.Variable(offset)

    @fast_function.fast_function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def add(self, x):
        return x + self.offset


def test_methods_belong_to_their_instances():
    modules = [Module(1), Module(10)]
    for _ in range(4):
        sums = [m.add(tf.constant([1, 2])).numpy().tolist() for m in modules]
        assert sums == [[2, 3], [11, 12]]


def test_a_saved_model_has_it(tmp_path):
    module = Module(5)
    repeat(module.add, tf.constant([1]))
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.add(tf.constant([1, 2])).numpy().tolist() == [6, 7]


def test_it_is_a_tf_function_in_all_else():
    function = fast_function.fast_function(lambda x: x + 1, autograph=False)
    assert isinstance(function, tf.types.experimental.PolymorphicFunction)
    repeat(function, tf.constant(1))
    concrete = function.get_concrete_function(tf.TensorSpec([], tf.int32))
    assert int(concrete(tf.constant(1))) == 2
    assert function.experimental_get_tracing_count() == 1


def test_its_traces_are_left_out_of_a_pickle():
    function = fast_function.fast_function(lambda x: x + 1)
    repeat(function, tf.constant(1))
    assert "_fast_paths" in vars(function)
    assert "_fast_paths" not in function.__getstate__()


def test_without_what_it_reaches_for_it_is_slower_but_the_same(looked_up):
    double = fast_function.fast_function(lambda x: x * 2)
    double(tf.constant(1))
    del double._function_captures

    assert [int(x) for x in repeat(double, tf.constant(1))] == [2] * 5
    assert len(looked_up) == 6
