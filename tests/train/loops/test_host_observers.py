"""Observers in Python: called at each step, or refused because they would not be."""

import numpy as np
import pytest
import tensorflow as tf

from tests.train.loops import test_episodic_loop
from tests.train.test_compiled_loop import (
    cart_poles,
    make_loop,
    python_environment,
    state,
)
from tfrl import testing, train
from tfrl.compilation.python_calls import gpu_calls
from tfrl.train.loops import loop_checks, placement


def corridors():
    return python_environment(
        testing.CorridorEnvironment(), testing.CorridorEnvironment()
    )


# Whether the loop is compiled, and its environment.
CASES = {
    "plain": (False, lambda: cart_poles(2)),
    "compiled": (True, lambda: cart_poles(2)),
    "compiled, Python": (True, corridors),
}


class Recorder:
    """Keeps all frames; raises an error at its frame number `fails_at`."""

    def __init__(self):
        self.frames = []
        self.fails_at = -1
        self.error = None

    def __call__(self, frame):
        if len(self.frames) == self.fails_at:
            raise self.error
        self.frames.append(frame)

    def stacked(self):
        return tf.nest.map_structure(lambda *x: np.stack(x, axis=1), *self.frames)


# XLA takes three seconds for each loop, and calls Python in the same way.
SLOW = pytest.param("compiled, Python", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["plain", "compiled", SLOW])
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def run(case):
    """A loop with a host observer, and what there was after 60 iterations."""
    recorder = Recorder()
    observers = [train.host_observer(recorder)]
    loop, replay_buffer = make_loop_of(case, observers=observers)
    after = loop.run(60)
    frames = list(recorder.frames), recorder.stacked(), replay_buffer.gather_all()
    return loop, (after, *frames), recorder, state(loop)


def make_loop_of(case, **kwargs):
    jit_compile, make_environment = case
    return make_loop(
        jit_compile, make_environment(), collect_steps_per_iteration=2, **kwargs
    )


def test_a_host_observer_gets_the_frames_that_the_buffer_gets_in_their_order(run):
    after, frames, stacked, gathered = run[1]
    assert len(frames) == 20 + 2 * 60
    assert after.episodes > 0
    assert all(isinstance(x, np.ndarray) for x in tf.nest.flatten(frames))
    tf.nest.map_structure(np.testing.assert_array_equal, stacked, gathered)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["plain", "compiled", SLOW], indirect=True)
def test_a_host_observer_does_not_change_the_results(run, case):
    loop, _ = make_loop_of(case)
    loop.run(60)
    for one, other in zip(run[-1], state(loop), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), KeyboardInterrupt()])
def test_an_exception_of_a_host_observer_ends_the_run_and_comes_out(run, error):
    loop, _, recorder, _ = run
    before = loop.info().train_steps
    recorder.fails_at, recorder.error = len(recorder.frames) + 5, error
    with pytest.raises(type(error)) as raised:
        loop.run(1000)
    assert raised.value is error
    assert len(recorder.frames) == recorder.fails_at
    assert loop.info().train_steps - before < 5
    recorder.fails_at = -1
    loop.run(3)
    assert len(recorder.frames) > 6
    assert loop.trace_count() == 1


def test_an_episodic_loop_calls_a_host_observer_too():
    recorder = Recorder()
    loop = test_episodic_loop.make_loop(observers=[train.host_observer(recorder)])
    loop.run(2)
    assert len(recorder.frames) >= loop.info().environment_steps > 0


# --- Refusals.


def test_an_observer_in_python_alone_is_refused_before_a_step():
    corridor, seen = testing.CorridorEnvironment(), []
    loop, _ = make_loop(False, python_environment(corridor), observers=[seen.append])
    with pytest.raises(
        ValueError,
        match=r"observers: got <built-in method append .* runs in Python alone.*"
        r"tf.Variable or a TF metric, or give train.host_observer\(function\)",
    ):
        loop.run(1)
    assert corridor.num_steps <= 1  # The reset.


def test_a_function_that_tensorflow_traces_is_refused_if_it_runs_in_python_alone():
    loop, _ = make_loop(False, observers=[tf.function(lambda frame: print("seen"))])
    with pytest.raises(ValueError, match="runs in Python alone"):
        loop.run(1)


def test_an_observer_that_only_reads_a_variable_is_refused():
    step = tf.Variable(1)
    loop, _ = make_loop(False, observers=[lambda frame: print(step + 1)])
    with pytest.raises(ValueError, match="runs in Python alone"):
        loop.run(1)


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param("a step", id="text", marks=pytest.mark.slow),
        pytest.param(tf.Variable(1.0), id="number"),
    ],
)
def test_tf_print_in_a_compiled_loop_is_an_error_that_says_so(printed):
    loop, _ = make_loop(observers=[lambda frame: tf.print(printed)])
    with pytest.raises(
        NotImplementedError,
        match=r"a program with tf\.print, .* train.host_observer.* jit_compile=False",
    ):
        loop.run(1)


def test_only_a_function_is_taken():
    with pytest.raises(TypeError, match="function: got 3, expected a function of a T"):
        train.host_observer(3)


def test_a_program_on_another_device_cannot_call_a_host_observer(monkeypatch):
    monkeypatch.setenv(gpu_calls.VARIABLE, "0")
    loop, _ = make_loop(False)
    obstacle = loop_checks.obstacle_to_compilation(
        loop.environment,
        loop.agent,
        None,
        [train.host_observer(print)],
        placement.Placement("/device:GPU:0", is_split=False),
        False,
    )
    assert obstacle.startswith("a host_observer, expected observers in TensorFlow: ")
    assert "runs on /device:GPU:0" in obstacle
