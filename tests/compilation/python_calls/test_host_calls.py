"""Python called from programs that XLA compiled."""

import ctypes
import gc
import re
import threading

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation.python_calls import host_calls, xla_ffi

pytestmark = pytest.mark.cpu  # Programs that call Python run there.

NUMBER = tf.TensorSpec([], tf.int32)
CHANNEL = host_calls.CallChannel()


def compiled(function):
    return tf.function(function, jit_compile=True, autograph=False)


def call(function, *inputs, specs=(NUMBER,), channel=CHANNEL, fallback=None):
    return host_calls.host_call(function, inputs, specs, channel, fallback)


def increment(x):
    return [x + 1]


# --- Values.


def test_all_dtypes_pass_both_ways():
    values = [
        tf.cast([[0, 1, 2], [3, 4, 5]], dtype) for dtype in host_calls._MLIR_TYPES
    ]
    seen = []

    def upside_down(*arrays):
        seen.extend(array.copy() for array in arrays)
        return [array[::-1] for array in arrays]

    specs = [tf.TensorSpec(value.shape, value.dtype) for value in values]
    results = compiled(lambda: call(upside_down, *values, specs=specs))()
    for value, array, result in zip(values, seen, results, strict=True):
        assert (array.dtype, result.dtype) == (value.numpy().dtype, value.dtype)
        np.testing.assert_array_equal(array, value)
        np.testing.assert_array_equal(result, array[::-1])


def test_scalars_and_empty_arrays_pass():
    def function(scalar, empty):
        assert (scalar.shape, empty.shape) == ((), (3, 0))
        return [scalar * 2, np.zeros([0, 2], np.float32)]

    specs = [tf.TensorSpec([], tf.float64), tf.TensorSpec([0, 2], tf.float32)]
    two = tf.constant(1.5, tf.float64)
    scalar, empty = compiled(
        lambda: call(function, two, tf.zeros([3, 0]), specs=specs)
    )()
    assert scalar.numpy() == 3.0
    assert empty.shape == [0, 2]


def test_nothing_has_to_go_in_or_come_out():
    count = []

    def program():
        call(lambda: count.append(1) or [], specs=[])
        call(lambda: count.append(2) or [3])  # Nobody asks for the result.

    compiled(program)()
    assert count == [1, 2]


def test_no_gradient_passes():
    @compiled
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            spec = tf.TensorSpec([], tf.float32)
            y = x * call(increment, x, specs=[spec])[0]
        return tape.gradient(y, x)

    assert gradient(tf.constant(2.0)).numpy() == 3.0


# --- Order.


def test_calls_are_made_in_the_order_in_which_they_were_written():
    """Though no call here needs what another returns."""
    log = []

    def note(text):
        return call(lambda: [log.append(text) or len(log)])[0]

    def body(i):
        note("loop 1")
        note("loop 2")
        return i + 1

    @compiled
    def program(condition):
        first = note("before")
        tf.while_loop(lambda i: i < 2, body, [tf.constant(0)])
        tf.cond(condition, lambda: note("true"), lambda: note("false"))
        tf.function(lambda: note("function"), autograph=False)()
        return note("after"), first

    last, first = program(tf.constant(False))
    assert log == ["before", *["loop 1", "loop 2"] * 2, "false", "function", "after"]
    assert (int(first), int(last)) == (1, 8)


def test_a_program_can_be_run_from_any_thread():
    @compiled
    def program():
        return call(lambda: [threading.get_ident() % 2**31])[0]

    found = []

    def run():
        with tf.device("CPU:0"):  # Each thread has its own choice.
            found.append((int(program()), threading.get_ident() % 2**31))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(one == two for one, two in found)


def test_programs_without_a_common_channel_run_at_the_same_time():
    barrier = threading.Barrier(2)

    def wait():
        barrier.wait(timeout=60)
        return [1]

    def program_of_its_own():
        channel = host_calls.CallChannel()
        return compiled(lambda: call(wait, channel=channel))

    thread = threading.Thread(target=program_of_its_own())
    thread.start()
    program_of_its_own()()
    thread.join()


# --- Errors.


class Collapse(Exception):
    """An error of the function."""


def test_an_exception_ends_the_loop_and_is_raised_after_the_program():
    channel, seen = host_calls.CallChannel(), []
    error = Collapse("the corridor collapsed")

    def function(i):
        seen.append(int(i))
        if i == 2:
            raise error
        return [i + 1]

    @compiled
    def program(end):
        return tf.while_loop(
            lambda i: (i < end) & ~channel.has_failed(),
            lambda i: call(function, i, channel=channel),
            [tf.constant(0)],
        )[0]

    with pytest.raises(Collapse) as raised, channel.raising():
        program(tf.constant(5))
    assert raised.value is error
    assert seen == [0, 1, 2]
    # The program is none the worse for it.
    with channel.raising():
        assert int(program(tf.constant(2))) == 2


def test_variables_of_a_program_whose_call_raises_stay_sound():
    """XLA updates them in place, and would free them in a program that fails."""
    channel = host_calls.CallChannel()
    variable = tf.Variable(tf.zeros([10000]))

    @compiled
    def program(fails):
        def body(i):
            variable.assign_add(tf.ones([10000]))
            call(lambda fails: [1 // int(1 - fails)], fails, channel=channel)
            return i + 1

        tf.while_loop(lambda i: i < 2, body, [tf.constant(0)])

    for fails in (0, 1, 1, 0):
        try:
            with channel.raising():
                program(tf.constant(fails))
        except ZeroDivisionError:
            assert fails
    np.testing.assert_array_equal(variable, np.full([10000], 8.0))


def test_after_an_exception_nothing_is_called_and_calls_return_the_fallback():
    channel, seen = host_calls.CallChannel(), []

    def function(i):
        seen.append(int(i))
        raise Collapse

    def fallback():
        return [7]

    @compiled
    def program():
        numbers = tf.range(4)
        return tf.stack(
            [
                call(function, numbers[0], channel=channel)[0],
                call(function, numbers[1], channel=channel, fallback=fallback)[0],
                call(function, numbers[2], channel=channel)[0],
            ]
        )

    with pytest.raises(Collapse), channel.raising():
        np.testing.assert_array_equal(program(), [0, 7, 0])
    assert seen == [0]


def test_an_interrupt_is_raised_too():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), CHANNEL.raising():
        compiled(lambda: call(interrupted))()


def test_an_exception_that_nobody_waits_for_is_printed_and_raised_later(capfd):
    channel = host_calls.CallChannel()

    def function():
        raise Collapse("the corridor collapsed")

    program = compiled(lambda: call(function, channel=channel))
    program()
    assert "Collapse: the corridor collapsed" in capfd.readouterr().err
    with pytest.raises(Collapse, match="the corridor collapsed"):
        channel.check()
    channel.check()
    with pytest.raises(Collapse), channel.raising():
        program()
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1, 2], "got 2 results, expected 1, one"),
        ([], "got 0 results, expected 1, one"),
        ([np.zeros(2)], "broadcast"),
        (None, "None"),
    ],
)
def test_results_that_do_not_fit_are_errors(result, message):
    with pytest.raises((TypeError, ValueError), match=message), CHANNEL.raising():
        compiled(lambda: call(lambda: result))()


@pytest.mark.parametrize(
    ("specs", "inputs"),
    [
        ([tf.TensorSpec([None], tf.int32)], []),
        ([tf.TensorSpec([], tf.string)], []),
        ([tf.TensorSpec([], tf.complex64)], []),
        ([NUMBER], ["text"]),
    ],
)
def test_what_cannot_pass_is_refused(specs, inputs):
    with pytest.raises(
        NotImplementedError,
        match=r"host_call: got TensorSpec.*expected a fully defined shape and one of "
        "the dtypes.*do not compile this loop",
    ):
        compiled(lambda: call(increment, *inputs, specs=specs))()


def test_inputs_of_unknown_shape_are_refused():
    signature = [tf.TensorSpec([None], tf.int32)]
    program = tf.function(
        lambda x: call(increment, x), signature, autograph=False, jit_compile=True
    )
    with pytest.raises(NotImplementedError, match=r"shape=\(None,\).*fully defined"):
        program.get_concrete_function()


class Library:
    """Of a TensorFlow without the interface."""


def newer_api():
    """An interface of a version whose structures may be others."""
    library = refusing_api()
    library.kept[0].version.major = 1
    return library


def refusing_api():
    """An interface that refuses to register a handler; all else is like the real."""
    refuse = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: 1)
    api = xla_ffi._Api(
        handler_register=ctypes.cast(refuse, ctypes.c_void_p).value,
        error_create=ctypes.cast(refuse, ctypes.c_void_p).value,
    )

    class GetApi:
        restype = None

        def __call__(self):
            return ctypes.addressof(api)

    library = Library()
    library._ZN3xla3ffi12GetXlaFfiApiEv = GetApi()
    library.kept = api, refuse
    return library


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (Library, "as it is installed here does not.*foreign function interface"),
        (refusing_api, "refused the handler"),
        (newer_api, "has version 1 of XLA's foreign function interface, expected 0"),
    ],
)
def test_a_tensorflow_without_the_interface_is_an_error(library, message, monkeypatch):
    loaded = library()
    monkeypatch.setattr(xla_ffi.ctypes, "CDLL", lambda _: loaded)
    monkeypatch.setattr(
        host_calls, "_register_handler", host_calls._register_handler.__wrapped__
    )
    with pytest.raises(NotImplementedError, match=f"{message}.*do not compile loops"):
        call(increment, 1)


# --- Graphs.


def test_a_function_traced_for_xla_works_outside_of_it():
    inner = tf.function(lambda x: call(increment, x)[0], autograph=False)
    assert int(compiled(lambda x: 2 * inner(x))(tf.constant(3))) == 8
    assert int(inner(tf.constant(3))) == 4
    assert inner.experimental_get_tracing_count() == 1


@pytest.fixture
def call_count():
    """How many calls are remembered now, besides the calls of other tests."""
    gc.collect()
    before = len(host_calls._sites)

    def count():
        gc.collect()
        return len(host_calls._sites) - before

    return count


def in_a_loop(function):
    """A compiled function that calls `function` until it comes to 5."""
    return compiled(
        lambda x: tf.while_loop(lambda i: i < 5, lambda i: [function(i)], [x])[0]
    )


def test_a_call_is_forgotten_with_the_function_it_is_in(call_count):
    program = in_a_loop(lambda x: call(increment, x)[0])
    program(tf.constant(1))
    assert call_count() == 1
    del program
    assert call_count() == 0


@pytest.mark.slow
def test_a_call_in_an_inner_function_outlives_the_outer_one(call_count):
    inner = tf.function(lambda x: call(increment, x)[0], autograph=False)
    assert int(in_a_loop(inner)(tf.constant(1))) == 5
    assert call_count() == 1
    second = in_a_loop(inner)
    assert int(second(tf.constant(2))) == 5
    assert inner.experimental_get_tracing_count() == 1
    del second, inner
    assert call_count() == 0


@pytest.mark.slow
def test_a_call_in_an_outer_function_outlives_the_inner_one(call_count):
    def make():
        return in_a_loop(tf.function(lambda x: call(increment, x)[0], autograph=False))

    program = make().get_concrete_function(tf.constant(0))
    assert call_count() == 1
    assert int(program(tf.constant(1))) == 5


# --- Calls from any graph.


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_call_from_any_graph_converts_its_results(jit_compile):
    @tf.function(jit_compile=jit_compile, autograph=False)
    def run(x):
        [y] = host_calls.call(lambda a: [a.astype(float)], [x], [NUMBER], CHANNEL)
        return y + 1

    assert run(tf.constant(3)) == 4
    assert run.get_concrete_function(tf.constant(3)).output_shapes == []


@pytest.mark.parametrize("jit_compile", [False, True])
def test_calls_from_any_graph_are_made_in_order(jit_compile):
    channel, seen = host_calls.CallChannel(), []

    def see(x):
        seen.append(int(x))
        return []

    @tf.function(jit_compile=jit_compile, autograph=False)
    def run():
        for i in range(20):
            host_calls.call(see, [tf.constant(i)], [], channel)

    run()
    assert seen == [*range(20)]
    assert not channel.has_failed()


ON_ANOTHER_DEVICE = """
import tensorflow as tf
from tfrl.environments import suite_gym, tf_py_environment

[cpu] = tf.config.list_physical_devices("CPU")
parts = [tf.config.LogicalDeviceConfiguration()] * 2  # The second one is as a GPU.
tf.config.set_logical_device_configuration(cpu, parts)
environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))

@tf.function(jit_compile=True, autograph=False)
def step():
    return environment.step(tf.constant([1])).reward

with tf.device("CPU:1"):
    try:
        step()
    except ValueError as error:
        print(error)
    with tf.device("CPU:0"):
        print(step().shape)
"""


@pytest.mark.slow
def test_a_program_on_another_device_is_refused(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(ON_ANOTHER_DEVICE)
    ended = run(str(script))
    assert ended.code == 0, ended.errors
    refused, shape = ended.output.splitlines()
    assert re.search(
        r"^jit_compile: got a compiled function .* on \S*CPU:1, expected it on the CPU"
        r".*; call the function inside of tf\.device\('CPU:0'\)\.$",
        refused,
    )
    assert shape == "(1,)"
