import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import pytest

from tfrl import system
from tfrl.system import channel as channels
from tfrl.system import child_errors, child_process, state_savers
from tfrl.system.child_process import FunctionProcess

# What the children run is defined here, and they do not import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

CLOSE, RUN = 2, 3


def run_what_comes(channel):
    """Answers each pickled function with what it returns; None ends it."""
    channel.send(channels.READY, b"ready")
    while True:
        kind, payload = channel.receive()
        if kind == CLOSE:
            return channel.send(CLOSE)
        channel.send(RUN, pickle.dumps(pickle.loads(payload)()))


def start(target=run_what_comes, name="child 7"):
    child = child_process.ChildProcess(target, name)
    child_process.wait([child.ready], 60, "limit")
    return child


def ask(child, function):
    return child.request(RUN, cloudpickle.dumps(function), "thinking")


def tell(child, function, timeout=60):
    reply = ask(child, function)
    child_process.wait([reply], timeout, "limit")
    return pickle.loads(reply.payload)


@pytest.fixture
def child():
    child = start()
    yield child
    child_process.stop_all([child], CLOSE, 0.5)


def test_runs_closures_in_another_process(child):
    number = 40
    assert child.ready.payload == b"ready"
    assert tell(child, lambda: number + 2) == 42
    assert tell(child, os.getpid) == child.pid != os.getpid()
    assert tell(child, lambda: sys.path) == sys.path


def test_a_child_imports_neither_tensorflow_nor_main(monkeypatch):
    # What other tests have registered with Gymnasium would be told, and imported.
    monkeypatch.setattr(state_savers, "_savers", [])
    child = start()
    modules = tell(child, lambda: list(sys.modules))
    child_process.stop_all([child], CLOSE, 0.5)
    assert not {"tensorflow", "keras", "gymnasium", "pytest"} & set(modules)


def test_large_messages_arrive_whole(child):
    big = os.urandom(3_000_000)
    assert tell(child, lambda: big[::-1]) == big[::-1]


def test_answers_come_in_the_order_of_the_requests(child):
    first, second = ask(child, lambda: 1), ask(child, lambda: 2)
    child_process.wait([second], 60, "limit")
    assert pickle.loads(first.payload) == 1
    assert pickle.loads(second.payload) == 2


def test_ends_when_asked_and_may_be_stopped_again():
    child = start()
    child_process.stop_all([child], CLOSE, 60)
    assert not child.is_alive()
    assert child._process.returncode == 0
    child_process.stop_all([child], CLOSE, 60)


def test_an_exception_arrives_with_its_traceback():
    def broken_target(channel):
        raise ArithmeticError("of the original")

    child = child_process.ChildProcess(broken_target, "child 7")
    with pytest.raises(system.ChildRaisedError, match="child 7: starting") as caught:
        child_process.wait([child.ready], 60, "limit")
    assert "in broken_target\n" in str(caught.value)
    assert "ArithmeticError: of the original" in str(caught.value)
    assert isinstance(caught.value.original, ArithmeticError)
    child_process.stop_all([child], CLOSE, 60)


def test_an_exception_that_does_not_pickle_arrives_as_text():
    class HoldsALock(Exception):
        def __init__(self):
            super().__init__("locked")
            self.lock = threading.Lock()

    def broken_target(channel):
        raise HoldsALock

    child = child_process.ChildProcess(broken_target, "child 7")
    with pytest.raises(system.ChildRaisedError, match="HoldsALock: locked") as caught:
        child_process.wait([child.ready], 60, "limit")
    assert caught.value.original is None
    child_process.stop_all([child], CLOSE, 60)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            "was killed by SIGKILL during thinking, .* machine ran out of memory",
        ),
        (
            lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "was killed by SIGSEGV during thinking, .* crash in native code",
        ),
        (lambda: os._exit(3), "exited with code 3 during thinking, .* os._exit"),
    ],
)
def test_a_death_is_told_with_its_cause(child, end, message):
    with pytest.raises(system.ChildDiedError, match=f"child 7: .*{message}"):
        tell(child, end)
    with pytest.raises(system.ChildDiedError, match="child 7: "):
        ask(child, end)


def test_a_death_while_nobody_waits_is_told_at_the_next_request(child):
    os.kill(child.pid, signal.SIGTERM)
    child._process.wait()
    with pytest.raises(system.ChildDiedError, match="was killed by SIGTERM during"):
        tell(child, os.getpid)


def test_a_death_is_seen_though_a_grandchild_holds_the_connection(child):
    def leave_a_fork():
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(5)

    with pytest.raises(system.ChildDiedError, match="exited with code 5"):
        tell(child, leave_a_fork)


def test_one_that_hangs_is_killed_and_says_where_it_was(child):
    def sleep_for_ever():
        time.sleep(1000)

    with pytest.raises(system.ChildTimeoutError, match="child 7: got no") as caught:
        tell(child, sleep_for_ever, timeout=0.1)
    assert isinstance(caught.value, TimeoutError)
    assert "no answer to thinking within 0.1 s" in str(caught.value)
    assert "or raise limit if" in str(caught.value)
    assert "in sleep_for_ever" in str(caught.value)
    assert not child.is_alive()


def test_one_that_hangs_does_not_hide_that_another_died(child):
    other = start(name="child 8")
    hangs = ask(child, lambda: time.sleep(1000))
    dies = ask(other, lambda: os._exit(1))
    with pytest.raises(system.ChildDiedError, match="child 8: "):
        child_process.wait([hangs, dies], 60, "limit")
    assert child.is_alive()
    child_process.stop_all([other], CLOSE, 60)


def test_stopping_kills_what_does_not_end_and_what_it_started(child):
    grandchild = tell(child, lambda: subprocess.Popen(["sleep", "1000"]).pid)

    def ignore_all():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)

    ask(child, ignore_all)
    child_process.stop_all([child], CLOSE, 0.1)
    assert not child.is_alive()
    assert ends(grandchild)


def test_what_a_dead_child_has_started_ends_as_well(child):
    grandchild = tell(child, lambda: subprocess.Popen(["sleep", "1000"]).pid)
    with pytest.raises(system.ChildDiedError):
        tell(child, lambda: os._exit(1))
    child_process.stop_all([child], CLOSE, 60)
    assert ends(grandchild)


def ends(pid):
    for _ in range(100):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
        ).stdout.strip()
        if not state or state.startswith("Z"):
            return True
        time.sleep(0.05)
    return False


# Forking a process with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_of_the_parent_leaves_the_children_alone(child):
    pid = os.fork()
    if pid == 0:
        try:
            child_process.stop_all([child], CLOSE, 0.1)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert tell(child, os.getpid) == child.pid


def test_what_does_not_pickle_is_refused_before_a_process_starts():
    lock = threading.Lock()
    with pytest.raises(TypeError, match="pickle"):
        child_process.ChildProcess(lambda channel: lock, "child 7")


def test_children_are_told_of_the_state_that_savers_save(monkeypatch):
    class Saver(state_savers.StateSaver):
        def collect_state(self):
            return "told"

        def restore_state(self, state):
            os.environ["TFRL_TEST_STATE"] = state

    monkeypatch.setattr(state_savers, "_savers", [])
    state_savers.add_state_savers([Saver()])
    child = start()
    assert tell(child, lambda: os.environ.get("TFRL_TEST_STATE")) == "told"
    assert "TFRL_TEST_STATE" not in os.environ
    child_process.stop_all([child], CLOSE, 60)


def test_children_know_the_environments_that_were_registered_here(monkeypatch):
    import gymnasium

    class Mine(gymnasium.Env):
        pass

    monkeypatch.setattr(
        gymnasium.envs.registration,
        "registry",
        {k: s for k, s in gymnasium.registry.items() if k in ("CartPole-v1", "Ant-v5")},
    )
    monkeypatch.setattr(state_savers, "_savers", [state_savers.GymnasiumStateSaver()])
    assert state_savers.collect_states() == []
    lock = threading.Lock()
    gymnasium.register("TfrlMine-v0", Mine)
    gymnasium.register("TfrlLocked-v0", lambda: lock)
    child = start()

    def look_up():
        import gymnasium

        assert "TfrlLocked-v0" not in gymnasium.registry
        return gymnasium.spec("TfrlMine-v0").entry_point.__name__

    assert tell(child, look_up) == "Mine"
    child_process.stop_all([child], CLOSE, 60)


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
