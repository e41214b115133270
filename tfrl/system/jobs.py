"""Runs Python modules as child processes, some of them at the same time."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfrl.system import interpreter, posix

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
    jobs: Sequence[Job],
    most: int,
    is_stopped: Callable[[], bool],
    on_end: Callable[[int, int], None],
    *,
    is_paused: Callable[[], bool] = lambda: False,
) -> list[int | None]:
    """Runs all jobs, each in its own process, which ends with this process.

    Args:
      jobs: The jobs, which are started in this order.
      most: The largest number of processes at the same time.
      is_stopped: Returns whether to stop: the running jobs then get a SIGTERM and time
        to end, and the others are not started.
      on_end: A function that is called with the number and the exit status of each job
        that ends.
      is_paused: Returns whether the processes should be paused (SIGSTOP) for now.

    Returns:
      The exit status of each job; negative for a job that a signal ended, None for a
      job that was not started.

    Raises:
      NotImplementedError: On Windows.
    """
    posix.check(jobs[0].module if jobs else "jobs")
    statuses: list[int | None] = [None] * len(jobs)
    waiting, running = list(range(len(jobs))), dict[int, subprocess.Popen[bytes]]()
    is_told = is_still = False
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        # The jobs see the pipe close when this process ends in any way.
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        stack.callback(_kill, running)
        while running or (waiting and not is_told):
            if is_still != (is_paused() and not is_told):
                is_still = not is_still
                for process in running.values():
                    _hold(process, is_still)
            while waiting and len(running) < most and not (is_told or is_still):
                number = waiting.pop(0)
                running[number] = _start(jobs[number], reading)
            time.sleep(_POLL)
            for number, process in list(running.items()):
                status = process.poll()
                if status is not None:
                    del running[number]
                    statuses[number] = status
                    on_end(number, status)
            if is_stopped() and not is_told:
                is_told = True
                for process in running.values():
                    process.send_signal(signal.SIGTERM)
    return statuses


def _start(job: Job, lifeline: int) -> subprocess.Popen[bytes]:
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with open(job.output, "ab") as output:
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
