"""Measures the time from a worker's failure to the error, and how workers end.

    python -m benchmarks worker_failures

Each line names the failure of one worker of a `ParallelPyEnvironment` of two, the time
from the failure (for a hanging worker: from the call) to the error, and the error's
type and first line. The last lines give the time for which workers outlive their
parent.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import command_line
from benchmarks.measurement import Session
from tfrl.environments import parallel_py_environment, py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

_STEP_TIMEOUT = 1.0
_PARENT = """
import time
from benchmarks import worker_failures
environment = worker_failures.make_environment()
environment.reset()
print(*(member.call("pid")() for member in environment.envs), flush=True)
{then}
time.sleep(1_000)
"""


class Faulty(py_environment.PyEnvironment):
    """An environment with the actions: 0 steps, 1 raises, 2 sleeps, 3 loops forever."""

    def observation_spec(self) -> array_spec.ArraySpec:
        """Returns the spec of one number."""
        return array_spec.ArraySpec((), np.float32, "observation")

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """Returns the spec of the actions."""
        return array_spec.BoundedArraySpec((), np.int32, 0, 3, "action")

    def pid(self) -> int:
        """Returns the id of the process in which it runs."""
        return os.getpid()

    def _reset(self) -> ts.TimeStep:
        return ts.restart(np.float32(0))

    def _step(self, action: Any) -> ts.TimeStep:
        if action == 1:
            raise RuntimeError("the environment's own message")
        if action == 2:
            time.sleep(1_000)
        while action == 3:
            pass
        return ts.transition(np.float32(0), reward=0.0)


def make_environment() -> parallel_py_environment.ParallelPyEnvironment:
    """Makes two of them, each in its own process."""
    return parallel_py_environment.ParallelPyEnvironment(
        [Faulty, Faulty], step_timeout=_STEP_TIMEOUT
    )


def worker_fails(say: Callable[[str], None], action: int, kill: bool) -> None:
    """Makes worker 1 fail in a step; prints the time to the error, and the error."""
    environment = make_environment()
    environment.reset()
    environment.step(np.array([0, 0], np.int32))
    start = time.perf_counter()
    if kill:
        os.kill(environment.envs[1].call("pid")(), signal.SIGKILL)
        start = time.perf_counter()
    try:
        environment.step(np.array([0, action], np.int32))
    except Exception as error:
        seconds = time.perf_counter() - start
        said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        what = "kill -9" if kill else {1: "raises", 2: "hangs"}[action]
        say(f"{what:<24}{1e3 * seconds:8.0f} ms  {said}")
    start = time.perf_counter()
    environment.close()
    say(f"{'  close() afterwards':<24}{1e3 * (time.perf_counter() - start):8.0f} ms")


def parent_dies(say: Callable[[str], None], name: str, then: str) -> None:
    """Kills a parent by SIGKILL; prints for how long its workers outlive it."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.5)  # Until the workers are inside the step.
    parent.kill()
    start = time.perf_counter()
    while any(_is_running(pid) for pid in pids):
        time.sleep(0.001)
    seconds = time.perf_counter() - start
    parent.wait()
    say(f"{name:<24}{1e3 * seconds:8.0f} ms  until both workers had ended")


def _is_running(pid: int) -> bool:
    """Returns whether a process is running; a zombie counts as ended."""
    ps = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(ps, capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def run(session: Session) -> None:
    """Measures each failure once."""
    worker_fails(session.say, 0, kill=True)
    worker_fails(session.say, 1, kill=False)
    worker_fails(session.say, 2, kill=False)
    step = "import numpy; environment.step(numpy.array([0, {}], numpy.int32))"
    parent_dies(session.say, "parent killed, idle", "")
    parent_dies(session.say, "parent killed, sleeping", step.format(2))
    parent_dies(session.say, "parent killed, busy", step.format(3))


if __name__ == "__main__":
    sys.exit(command_line.main(["worker_failures", *sys.argv[1:]]))
