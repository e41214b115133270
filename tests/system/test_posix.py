"""What needs a POSIX system says so on Windows, before it starts anything."""

import signal
import sys

import pytest

from tfrl.system import child_errors, child_process, jobs, posix


def refused(monkeypatch, start):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NotImplementedError) as caught:
        start()
    return str(caught.value)


def test_a_child_is_refused_with_what_to_do_instead(monkeypatch):
    text = refused(monkeypatch, lambda: child_process.ChildProcess(print, "actor 3"))
    assert text.startswith("actor 3: expected a POSIX system, such as Linux or macOS")
    assert "got Windows" in text
    assert "BatchedPyEnvironment" in text
    assert "WSL" in text


def test_functions_in_processes_are_refused(monkeypatch):
    text = refused(monkeypatch, lambda: child_process.FunctionProcess(print, "p"))
    assert text.startswith("p: expected a POSIX system")


def test_jobs_are_refused_before_anything_is_written(monkeypatch, tmp_path):
    job = jobs.Job("this", [], tmp_path / "folder" / "out.txt")
    run = lambda: jobs.run_all([job], 1, lambda: False, print)  # noqa: E731
    assert refused(monkeypatch, run).startswith("this: expected a POSIX system")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        lambda: posix.end_group(1 << 22, kills=True),
        lambda: posix.stack(1 << 22, 0),
        lambda: posix.poller([0]),
        lambda: posix.is_readable(0),
    ],
)
def test_nothing_is_done_to_a_process_there(monkeypatch, call):
    assert "got Windows" in refused(monkeypatch, call)


def test_no_exit_code_means_a_signal_on_windows(monkeypatch):
    assert child_errors.was_killed(-signal.SIGKILL)
    assert not child_errors.was_killed(1)
    monkeypatch.setattr(sys, "platform", "win32")
    assert not child_errors.was_killed(-signal.SIGKILL)
