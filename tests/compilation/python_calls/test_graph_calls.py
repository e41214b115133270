import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.compilation.python_calls import graph_calls
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


NUMBER = tf.TensorSpec([], tf.int64)


def test_calls_are_in_the_order_of_the_program_also_in_loops():
    call = graph_calls.OrderedCalls()
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
    call = graph_calls.OrderedCalls()
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
    call = graph_calls.OrderedCalls()

    def fail():
        raise RuntimeError("no server")

    with pytest.raises(RuntimeError, match="no server"):
        call(fail, [], [])
    with pytest.raises(tf.errors.OpError, match="RuntimeError: no server"):
        tf.function(lambda: call(fail, [], []))()


def test_a_foreign_threads_python_state_stays_between_calls():
    """Thread-local values are lost with the state; these are kept."""
    kept = threading.local()
    seen = []

    def call():
        graph_calls.keep_thread_state()
        seen.append(getattr(kept, "value", None))
        kept.value = threading.get_ident()
        return []

    @tf.function
    def step():
        tf.numpy_function(call, [], [])

    for _ in range(50):
        step()
    first_calls = seen.count(None)
    # Without it, every call from another thread would be a first one.
    assert 1 <= first_calls < 25
    assert len(seen) == 50


def test_it_may_be_called_from_an_ordinary_thread():
    thread = threading.Thread(target=graph_calls.keep_thread_state)
    thread.start()
    thread.join()
    assert not thread.is_alive()
    graph_calls.keep_thread_state()
