import multiprocessing
import os
import signal
import time
from multiprocessing import connection

import pytest

from tfrl.environments.gymnasium.worker_watch import WorkerWatch
from tfrl.system import child_errors


@pytest.fixture
def start():
    """Starts processes by what they do; ends them after the test."""
    context = multiprocessing.get_context("forkserver")
    started = []

    def start(function, *args):
        process = context.Process(target=function, args=args, daemon=True)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


def test_the_death_of_one_ends_the_others_and_is_named(start):
    processes = [start(time.sleep, 60) for _ in range(3)]
    watch = WorkerWatch(processes)
    os.kill(processes[1].pid, signal.SIGSEGV)
    while not watch.has_found_death:
        time.sleep(0.001)
    watch.stop()  # Of two threads that ask for an exit code, one may get 255.
    assert [process.exitcode for process in processes] == [-15, -11, -15]
    message = str(watch.death("reset"))
    assert "exit codes [None, -11, None], None for one that runs): member 1" in message
    assert f"process {processes[1].pid} was killed by SIGSEGV during reset" in message


def test_an_orderly_end_leaves_the_others_alone(start):
    ended, running = start(time.sleep, 0), start(time.sleep, 60)
    watch = WorkerWatch([ended, running])
    # Unlike a join, this leaves the exit code to the thread that watches.
    connection.wait([ended.sentinel])
    running.join(0.5)
    assert running.is_alive()
    assert "member 0: its process" in str(watch.death("step"))
    assert "exited with code 0" in str(watch.death("step"))
    watch.end_all()
    assert running.exitcode == -signal.SIGTERM


def test_workers_may_end_after_a_stop(start):
    processes = [start(time.sleep, 60) for _ in range(2)]
    watch = WorkerWatch(processes)
    assert watch.death("step") is None
    watch.stop()
    watch.stop()
    processes[0].kill()
    processes[0].join()
    processes[1].join(0.5)
    assert processes[1].is_alive()


def test_a_worker_that_ignores_the_request_to_end_is_killed(start):
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    receiver, sender = multiprocessing.Pipe(duplex=False)
    code = f"import signal, time; {ignore}; sender.send(1); time.sleep(60)"
    process = start(exec, code, {"sender": sender})
    receiver.recv()
    WorkerWatch([process]).end_all()
    assert process.exitcode == -signal.SIGKILL


def test_a_call_that_takes_too_long_ends_all(start):
    processes = [start(time.sleep, 60) for _ in range(2)]
    watch = WorkerWatch(processes)
    with watch.limited(0.1):
        # Unlike a join, this leaves the exit codes to the thread that watches.
        for process in processes:
            connection.wait([process.sentinel])
    assert watch.has_found_death
    error = watch.death("step")
    assert isinstance(error, child_errors.ChildTimeoutError)
    assert str(error).startswith(
        "vector_env: a member: got no answer to step within 0.1 s, expected one; fix "
        "what hangs, or raise step_timeout"
    )


@pytest.mark.parametrize("seconds", [0.1, None])
def test_time_between_calls_does_not_count(start, seconds):
    running = start(time.sleep, 60)
    watch = WorkerWatch([running])
    with watch.limited(seconds):
        pass
    running.join(1.0)
    assert not watch.has_found_death
    watch.end_all()
