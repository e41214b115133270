"""Signals as requests to stop. Children do what no handler can interrupt."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tfrl.replay_service.sampling import interrupts as sampling_interrupts
from tfrl.system import interrupts

BOTH = [signal.SIGINT, signal.SIGTERM]
hangup = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")


@pytest.fixture(autouse=True)
def python_handles_sigint():
    """A process that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def describe():
    return "step 7 of Maze"


@pytest.mark.parametrize("number", BOTH)
def test_the_first_signal_is_a_request(number):
    before = [signal.getsignal(n) for n in BOTH]
    with interrupts.requested(BOTH, describe) as is_requested:
        assert not is_requested()
        signal.raise_signal(number)
        assert is_requested()
    assert [signal.getsignal(n) for n in BOTH] == before


def receive(*numbers):
    with interrupts.requested(BOTH, describe):
        for number in numbers:
            signal.raise_signal(number)
    return "went on"


def test_a_second_interrupt_is_raised_where_it_arrives():
    assert receive(signal.SIGTERM) == "went on"
    with pytest.raises(KeyboardInterrupt):
        receive(signal.SIGTERM, signal.SIGINT)


def test_a_second_termination_exits_with_its_status():
    with pytest.raises(SystemExit) as error:
        receive(signal.SIGINT, signal.SIGTERM)
    assert error.value.code == 143


@hangup
def test_a_terminal_that_closes_may_send_several_hangups():
    with interrupts.requested(interrupts.SIGNALS, describe) as is_requested:
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
        assert is_requested()
    assert interrupts.exit_status() == 129


@hangup
def test_a_hangup_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As nohup does.
    try:
        with interrupts.requested(interrupts.SIGNALS, describe) as is_requested:
            signal.raise_signal(signal.SIGHUP)
            assert not is_requested()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("SIGINT", KeyboardInterrupt, 130),
        ("SIGTERM", interrupts.Terminated, 143),
        pytest.param("SIGHUP", interrupts.Terminated, 129, marks=hangup),
    ],
)
def test_the_program_ends_as_the_signal_that_stopped_it(name, error, status):
    with interrupts.requested(interrupts.SIGNALS, describe):
        signal.raise_signal(signal.Signals[name])
    assert interrupts.exit_status() == status
    with pytest.raises(error) as raised:
        interrupts.stop()
    assert getattr(raised.value, "code", 130) == status
    with interrupts.requested(interrupts.SIGNALS, describe):
        pass
    assert interrupts.exit_status() == 130  # The signal of an earlier part is over.


def terminate_deferred():
    with interrupts.deferred(describe, interrupts.SIGNALS) as is_requested:
        signal.raise_signal(signal.SIGTERM)
        assert is_requested()


def test_a_termination_can_be_deferred_too():
    with pytest.raises(interrupts.Terminated):
        terminate_deferred()


ON_A_TERMINAL = """
import os, signal, time
from tfrl.system import interrupts

# The session's leader is the shell, which passes the hangup on.
with interrupts.requested(interrupts.SIGNALS, lambda: "a step") as is_requested:
    os.write(int(os.environ["READY"]), b"1")
    while not is_requested():
        time.sleep(0.01)
    print("saving", flush=True)
    os.write(int(os.environ["READY"]), b"2")
raise SystemExit(interrupts.exit_status())
"""


@hangup
def test_output_after_the_terminal_has_closed_is_no_error():
    main, terminal = os.openpty()
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        pass_fds=[writing],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "READY": str(writing),
        },
    )
    os.close(terminal)
    os.close(writing)
    assert os.read(reading, 1) == b"1"
    os.close(main)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 129
    assert os.read(reading, 1) == b"2"
    os.close(reading)


def receive_deferred(done, error=None):
    with interrupts.deferred(describe) as is_requested:
        signal.raise_signal(signal.SIGINT)
        done.append(is_requested())
        if error is not None:
            raise error


def test_a_deferred_interrupt_is_raised_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt):
        receive_deferred(done)
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_of_waiting_samplers_is_deferred_too():
    handle = sampling_interrupts.WATCH.handle
    signal.signal(signal.SIGINT, handle)
    done = []
    with pytest.raises(KeyboardInterrupt):
        receive_deferred(done)
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) == handle


def test_an_error_does_not_swallow_a_deferred_interrupt():
    failure = ValueError("the maze has no exit")
    with pytest.raises(KeyboardInterrupt) as error:
        receive_deferred([], failure)
    assert error.value.__cause__ is failure


def test_without_a_signal_nothing_is_raised():
    with interrupts.deferred(describe) as is_requested:
        assert not is_requested()
    with pytest.raises(ValueError, match="no exit"), interrupts.deferred(describe):
        raise ValueError("the maze has no exit")


def test_a_handler_of_the_program_stays():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
    try:
        with interrupts.deferred(describe) as is_requested:
            signal.raise_signal(signal.SIGINT)
            assert not is_requested()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == ["own"]


def test_another_thread_changes_no_handler():
    found = []

    def look():
        with interrupts.requested(BOTH, describe) as is_requested:
            found.append((signal.getsignal(signal.SIGINT), is_requested()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [(signal.default_int_handler, False)]


def test_the_wakeup_descriptor_of_an_event_loop_stays():
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        try:
            with interrupts.requested(BOTH, describe) as is_requested:
                signal.raise_signal(signal.SIGTERM)
                assert is_requested()
            assert reader.recv(1) == bytes([signal.SIGTERM])
        finally:
            assert signal.set_wakeup_fd(-1) == writer.fileno()


@pytest.fixture
def new_watcher(monkeypatch):
    """Without the signals of earlier tests, which the other one may not have read."""
    monkeypatch.setattr(interrupts, "_current", None)


def interrupt_until(is_named):
    with interrupts.requested(BOTH, describe):
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while not is_named() and time.monotonic() < deadline:
            time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("new_watcher")
def test_a_call_of_python_that_goes_on_after_a_signal_is_named(capfd):
    """XLA may run a compiled loop, and so the steps of environments, on this thread."""
    errors = []

    def is_named():
        errors.append(capfd.readouterr().err)
        return errors[-1]

    with pytest.raises(KeyboardInterrupt):
        interrupt_until(is_named)
    text = "\nSIGINT: waiting for step 7 of Maze. A second one ends the process.\n"
    assert "".join(errors) == text


@pytest.mark.usefixtures("new_watcher")
def test_a_call_that_follows_a_handled_signal_is_not_named(capfd, monkeypatch):
    monkeypatch.setattr(interrupts, "_PATIENCE", 0.3)
    steps = itertools.count()
    with interrupts.requested(BOTH, lambda: f"step {next(steps)} of Maze"):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.6)
    assert capfd.readouterr().err == ""
    assert next(steps)


CHILD = """
import ctypes, multiprocessing, signal, sys, threading, time
from tfrl.replay_service.sampling import interrupts as sampling_interrupts
from tfrl.system import interrupts

def sleep():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(60)

if __name__ == "__main__":
    number, seconds = signal.Signals(int(sys.argv[1])), float(sys.argv[2])
    child = multiprocessing.get_context("spawn").Process(target=sleep, daemon=True)
    child.start()
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    main = threading.get_native_id()

    def announce():
        # A signal before the main thread waits would be handled by it.
        asleep = 0
        while asleep < 20:
            time.sleep(0.01)
            with open(f"/proc/self/task/{main}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            asleep = asleep + 1 if state == "S" else 0
        print(child.pid, flush=True)
        threading.Timer(seconds, library.pthread_mutex_unlock, [mutex]).start()

    with interrupts.requested([number], lambda: "step 7 of Maze") as is_requested:
        threading.Thread(target=announce).start()
        library.pthread_mutex_lock(mutex)  # Waits; no signal ends that.
        print("requested", is_requested(), flush=True)
"""


def start(tmp_path, number, seconds):
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    process = subprocess.Popen(
        [sys.executable, str(script), str(int(number)), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return process, int(process.stdout.readline())


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_second_signal_ends_a_process_whose_call_does_not_return(
    tmp_path, number, status
):
    process, child = start(tmp_path, number, seconds=100)
    with process:
        process.send_signal(number)
        name = number.name
        assert process.stderr.readline() == "\n"
        assert process.stderr.readline() == (
            f"{name}: waiting for step 7 of Maze. A second one ends the process.\n"
        )
        process.send_signal(number)
        assert process.wait(30) == status
        assert process.stderr.read() == (
            f"\n{name}: step 7 of Maze does not return and cannot be interrupted, so "
            f"the process ends here with status {status}, without saving.\n"
        )
    assert not is_running(child)


def test_a_call_that_returns_soon_is_not_ended(tmp_path):
    process, _ = start(tmp_path, signal.SIGINT, seconds=0.5)
    with process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "requested True\n", "")
