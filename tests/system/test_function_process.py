"""Functions in processes of their own: how they stop, and how they end."""

import os
import signal
import time

import pytest

from tfrl.system import child_errors
from tfrl.system.function_process import FunctionProcess

PATIENCE = 60.0


def until_stopped(is_stopped):
    while not is_stopped():
        time.sleep(0.01)


def ending_of(process):
    deadline = time.monotonic() + PATIENCE
    while (ending := process.poll()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return ending


def test_a_function_that_returns_has_finished():
    process = FunctionProcess(lambda is_stopped: (is_stopped(), 2), "brief")
    assert ending_of(process).has_finished
    process.stop(PATIENCE)
    assert process.result == (False, 2)


def test_a_function_is_told_to_stop(tmp_path):
    def work(is_stopped):
        until_stopped(is_stopped)
        (tmp_path / "saved").touch()

    process = FunctionProcess(work, "patient")
    assert process.poll() is None
    process.stop(PATIENCE)
    assert (tmp_path / "saved").exists()


def test_a_killed_process_says_so():
    process = FunctionProcess(until_stopped, "victim")
    os.kill(process.pid, signal.SIGKILL)
    ending = ending_of(process)
    assert ending.how == "was killed by SIGKILL"
    assert not ending.has_finished
    assert process.result is None
    process.stop(0.0)


def test_an_exception_comes_with_its_traceback():
    def fail(is_stopped):
        raise ArithmeticError("the pole fell")

    process = FunctionProcess(fail, "clumsy")
    error = ending_of(process).error
    assert isinstance(error.original, ArithmeticError)
    assert "in fail" in str(error)
    process.stop(0.0)


def test_a_function_that_does_not_stop_is_killed():
    def ignore(is_stopped):
        time.sleep(1000)

    process = FunctionProcess(ignore, "deaf")
    process.stop(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_an_exception_while_stopping_is_raised():
    def fail_at_the_end(is_stopped):
        until_stopped(is_stopped)
        raise OSError("no space left")

    process = FunctionProcess(fail_at_the_end, "late")
    with pytest.raises(child_errors.ChildRaisedError, match="no space left"):
        process.stop(PATIENCE)
