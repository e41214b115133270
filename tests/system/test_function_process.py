"""Functions in processes of their own: how they stop, and how they end."""

import os
import pathlib
import signal
import subprocess
import sys
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
    # Nobody who runs a command has anything to close.
    then = "fix its cause, then run the same again"
    with pytest.raises(
        child_errors.ChildRaisedError, match=rf"(?s)^late: .*{then}\..*no space left"
    ):
        process.stop(PATIENCE)


@pytest.mark.parametrize("is_asked", [True, False])
def test_processes_that_a_function_leaves_behind_end_with_it(tmp_path, is_asked):
    def work(is_stopped):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (tmp_path / "unnamed").write_text(str(child.pid))
        (tmp_path / "unnamed").rename(tmp_path / "pid")
        if is_asked:
            until_stopped(is_stopped)

    process = FunctionProcess(work, "careless")
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    if not is_asked:
        assert ending_of(process).has_finished
    process.stop(PATIENCE)
    assert wait_for_end(pid)


def wait_for_end(pid):
    """Whether a process, which is no child of this one, has ended; waits for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        # An ended process may be kept as a zombie until its new parent asks for it.
        status = pathlib.Path(f"/proc/{pid}/stat")
        if (
            not status.exists()
            or status.read_text().rpartition(")")[2].split()[0] == "Z"
        ):
            return True
        time.sleep(0.01)
    return False
