import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import graph_calls, internals
from tfrl.environments import suite_gym, tf_py_environment

pytestmark = pytest.mark.cpu  # Programs that call Python run there.


class Doubler:
    def call(self, x):
        return 2 * x

    def in_graph(self, x):
        doubled = graph_calls.numpy_function(self.call, [x], tf.float32)
        return tf.ensure_shape(doubled, [])


ONE = tf.constant(1.0)


def as_function(doubler):
    return tf.function(doubler.in_graph, autograph=False)


def direct(doubler):
    return as_function(doubler).get_concrete_function(ONE)


def in_a_traced_function(doubler):
    inner = as_function(doubler)
    inner(ONE)
    return tf.function(inner, autograph=False).get_concrete_function(ONE)


def in_a_loop(doubler):
    def step(i, x):
        return i + 1, doubler.in_graph(x)

    def run(x):
        return tf.while_loop(lambda i, _: i < 1, step, (0, x))[1]

    return tf.function(run, autograph=False).get_concrete_function(ONE)


def in_a_branch(doubler):
    def run(x):
        return tf.cond(x > 0, lambda: doubler.in_graph(x), lambda: x)

    return tf.function(run, autograph=False).get_concrete_function(ONE)


def in_a_dataset(doubler):
    numbers = tf.data.Dataset.from_tensors(ONE).repeat(9)
    return iter(numbers.map(doubler.in_graph))


def in_a_dataset_by_a_traced_function(doubler):
    inner = as_function(doubler)
    inner(ONE)
    return iter(tf.data.Dataset.from_tensors(ONE).repeat(9).map(inner))


@pytest.mark.parametrize(
    "make",
    [
        direct,
        in_a_traced_function,
        in_a_loop,
        in_a_branch,
        in_a_dataset,
        in_a_dataset_by_a_traced_function,
    ],
)
def test_the_object_lives_as_long_as_a_graph_that_calls_it(make):
    doubler = Doubler()
    reference = weakref.ref(doubler)
    made = make(doubler)
    del doubler
    gc.collect()
    for _ in range(2):
        result = next(made) if make.__name__.startswith("in_a_dataset") else made(ONE)
        assert float(result) == 2.0
    del made, result
    gc.collect()
    assert reference() is None


def test_outside_of_a_function_it_is_an_ordinary_call():
    assert float(graph_calls.numpy_function(Doubler().call, [ONE], tf.float32)) == 2.0
    with tf.Graph().as_default():
        result = Doubler().in_graph(tf.constant(3.0))
        with tf.compat.v1.Session() as session:
            assert session.run(result) == 6.0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_an_environment_is_freed_with_the_function_that_steps_it(jit_compile):
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))
    environment.reset()
    step = tf.function(environment.step, autograph=False, jit_compile=jit_compile)
    np.testing.assert_array_equal(step(tf.constant([0])).reward, [1.0])
    reference = weakref.ref(environment)
    del environment, step
    gc.collect()
    assert reference() is None


RESULTS = {
    "number": (lambda: 3, tf.int64, 3),
    "text": (lambda: "Ω", tf.string, "Ω".encode()),
    "bytes": (lambda: b"a\0b", tf.string, b"a\0b"),
    "texts": (lambda: np.array(["a", "bc"]), tf.string, [b"a", b"bc"]),
    "transposed": (
        lambda: np.arange(6).reshape(2, 3).T,
        tf.int64,
        [[0, 3], [1, 4], [2, 5]],
    ),
    "two": (lambda: (1, np.float32(2)), [tf.int64, tf.float32], [1, 2]),
}


@pytest.mark.parametrize("has_names", [True, False])
def test_results_of_all_kinds_arrive(monkeypatch, has_names):
    if not has_names:
        monkeypatch.setattr(internals, "register_py_function", lambda _: None)
    calls = []

    @tf.function(autograph=False)
    def run():
        graph_calls.numpy_function(lambda: calls.append(0), [], [])
        return {
            name: graph_calls.numpy_function(function, [], dtypes)
            for name, (function, dtypes, _) in RESULTS.items()
        }

    for name, tensors in run().items():
        got = tf.nest.map_structure(np.asarray, tensors)
        np.testing.assert_array_equal(got, RESULTS[name][2])
    assert calls == [0]


def test_arrays_are_not_converted_again(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("converted")

    from tensorflow.python.ops import script_ops

    monkeypatch.setattr(script_ops.FuncRegistry, "_convert", refuse)
    assert float(direct(Doubler())(ONE)) == 2.0


def test_an_exception_keeps_its_kind_and_text():
    def fail(x):
        raise KeyError(f"no {x:.0f}")

    with pytest.raises(tf.errors.UnknownError, match="KeyError: 'no 1'"):
        tf.function(lambda x: graph_calls.numpy_function(fail, [x], tf.float32))(ONE)
