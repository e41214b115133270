"""Runs Python modules as child processes, some of them at the same time."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import NamedTuple

from tfrl.system import files, interpreter, posix

# File descriptor 1 is the job's output file.
_CODE = (
    "import os, runpy; os.dup2(1, 2); from tfrl.system import child_main; "
    "lifeline, parent, module = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]; "
    "del sys.argv[1:4]; os.set_inheritable(lifeline, False); "
    "child_main.end_with_parent(lifeline, parent); "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)
_POLL = 0.05  # Seconds.


class Job(NamedTuple):
    """A module to run.

    Attributes:
      module: The name of the module, as after `python -m`.
      arguments: Its command line.
      output: The file to which all output of the job is appended.
    """

    module: str
    arguments: Sequence[str]
    output: pathlib.Path


def run_all(
    jobs: Iterable[Job],
    most: int,
    is_stopped: Callable[[], bool],
    on_end: Callable[[int, int], None],
    *,
    is_paused: Callable[[], bool] = lambda: False,
    ends_early: Callable[[int], bool] = lambda _: False,
) -> list[int | None]:
    """Runs all jobs, each in its own process, which ends with this process.

    Args:
      jobs: The jobs, which are started in this order. A generator is asked for the next
        one when a process is free, so that it may depend on the jobs that have ended.
      most: The largest number of processes at the same time.
      is_stopped: Returns whether to stop: the running jobs then get a SIGTERM and time
        to end, and the others are not started.
      on_end: A function that is called with the number and the exit status of each job
        that ends.
      is_paused: Returns whether the processes should be paused (SIGSTOP) for now.
      ends_early: Returns whether the job with a given number should end now; it then
        gets a SIGTERM.

    Returns:
      The exit status of each job; negative for a job that a signal ended, None for a
      job that was not started. A generator's jobs that were not started are left out.

    Raises:
      NotImplementedError: On Windows.
    """
    statuses: list[int | None] = []
    waiting, running = iter(jobs), dict[int, subprocess.Popen[bytes]]()
    told: set[int] = set()
    has_more, is_told, is_still = True, False, False
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        # The jobs see the pipe close when this process ends in any way.
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        stack.callback(_kill, running)
        while running or (has_more and not is_told):
            if is_still != (is_paused() and not is_told):
                is_still = not is_still
                for process in running.values():
                    _hold(process, is_still)
            while has_more and len(running) < most and not (is_told or is_still):
                job = next(waiting, None)
                has_more = job is not None
                if job is not None:
                    running[len(statuses)] = _start(job, reading)
                    statuses.append(None)
            time.sleep(_POLL)
            for number, status in _ended(running):
                statuses[number] = status
                on_end(number, status)
            is_told = is_told or is_stopped()
            for number in running.keys() - told:
                if is_told or ends_early(number):
                    told.add(number)
                    running[number].send_signal(signal.SIGTERM)
    left = len(jobs) - len(statuses) if isinstance(jobs, Sized) else 0
    return statuses + [None] * left


def _ended(running: dict[int, subprocess.Popen[bytes]]) -> list[tuple[int, int]]:
    """Takes the processes that have ended; returns their numbers and statuses."""
    polled = [(number, process.poll()) for number, process in running.items()]
    ended = [(number, status) for number, status in polled if status is not None]
    for number, _ in ended:
        del running[number]
    return ended


def _start(job: Job, lifeline: int) -> subprocess.Popen[bytes]:
    posix.check(job.module)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with files.open_to_append(job.output, "ab") as output:
        return interpreter.start(
            _CODE,
            [lifeline, os.getpid(), job.module, *job.arguments],
            stdin=subprocess.DEVNULL,
            stdout=output.fileno(),
            pass_fds=[lifeline],
        )


def _hold(process: subprocess.Popen[bytes], is_still: bool) -> None:
    if sys.platform != "win32":  # On systems without jobs.
        process.send_signal(signal.SIGSTOP if is_still else signal.SIGCONT)


def _kill(running: dict[int, subprocess.Popen[bytes]]) -> None:
    for process in running.values():
        process.kill()
        process.wait()
