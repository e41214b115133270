"""The lock of a directory, between processes."""

import errno
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
from concurrent import futures

import pytest

from tfrl.system import directory_lock, file_lock

# Locks a directory on a host of this name.
HOLD = """
import socket, sys
from tfrl.system import directory_lock
socket.gethostname = lambda: sys.argv[2]
directory_lock.lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start():
    """Starts processes that lock a directory until their stdin closes."""
    processes = []

    def start(directory, script=HOLD, host=None, answer="locked\n"):
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                script,
                str(directory),
                host or socket.gethostname(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == answer
        return process

    yield start
    for process in processes:
        process.communicate()


@pytest.fixture
def lock(tmp_path):
    """Locks a directory in this process, and releases it after the test."""
    locks = []

    def lock(directory=tmp_path):
        locks.append(directory_lock.lock(directory))
        return locks[-1]

    yield lock
    for held in locks:
        held.release()


def write(directory, **content):
    (directory / "lock").write_text(json.dumps(content))


def test_the_file_names_the_process_and_goes_with_the_lock(tmp_path, lock):
    held = lock()
    content = json.loads((tmp_path / "lock").read_text())
    assert (content["pid"], content["host"]) == (os.getpid(), socket.gethostname())
    assert held.is_intact
    assert directory_lock.is_held(tmp_path)
    held.release()
    assert list(tmp_path.iterdir()) == []
    assert not directory_lock.is_held(tmp_path)
    held.release()


def test_a_process_may_lock_a_directory_again(tmp_path, lock):
    first = lock()
    (tmp_path / "link").symlink_to(tmp_path)
    assert lock(tmp_path / "link") is first


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_lock_that_leads_to_another_file_leaves_it(make, tmp_path, lock):
    own = tmp_path / "own"
    own.write_text("own")
    make(own, tmp_path / "lock")
    with pytest.raises(OSError, match=r"it is a link, to|has other names, whi"):
        lock()
    assert own.read_text() == "own"


def test_the_name_of_a_holder_gives_a_terminal_no_commands(tmp_path, lock, caplog):
    holder = {"pid": "\x1b[2J", "host": "\x9b2J"}
    (tmp_path / "lock").write_text(json.dumps(holder))
    lock()
    (record,) = caplog.records
    assert r"process \x1b[2J on host \x9b2J since None" in record.getMessage()


def test_another_process_is_refused_by_name(tmp_path, start, lock):
    process = start(tmp_path)
    with pytest.raises(directory_lock.DirectoryLockedError) as error:
        lock()
    text = str(error.value)
    assert f"locked by process {process.pid} on host {socket.gethostname()}" in text
    assert str(tmp_path / "lock") in text
    assert not directory_lock.is_held(tmp_path)
    assert json.loads((tmp_path / "lock").read_text())["pid"] == process.pid


def test_the_lock_of_a_killed_process_is_taken_over_with_a_line(
    tmp_path, start, lock, caplog
):
    process = start(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "lock").exists()
    with caplog.at_level(logging.WARNING, "tfrl.system"):
        lock()
    (line,) = caplog.messages
    assert f"locked by process {process.pid}" in line
    assert f"does not hold it any more; process {os.getpid()} takes over" in line
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_a_number_that_another_process_has_now_does_not_hold_the_lock(
    tmp_path, lock, caplog
):
    # Process 1 runs, but the kernel knows that it does not hold the lock.
    write(tmp_path, pid=1, host=socket.gethostname(), since="long ago")
    lock()
    assert "locked by process 1 " in caplog.text


def test_a_process_that_ends_removes_its_file(tmp_path, start, lock, caplog):
    start(tmp_path).communicate()
    assert not (tmp_path / "lock").exists()
    lock()
    assert caplog.messages == []


def test_the_process_may_open_and_close_the_file(tmp_path, start, lock):
    held = lock()
    (tmp_path / "lock").read_bytes()
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    assert held.is_intact
    refused = start(tmp_path, answer="")
    assert f"locked by process {os.getpid()}" in refused.communicate()[1]


# As in a container, which has another host name each time.
def test_the_lock_of_a_killed_process_on_another_host_is_taken_over(
    tmp_path, start, lock, caplog
):
    process = start(tmp_path, host="container-1")
    with pytest.raises(directory_lock.DirectoryLockedError, match="host container-1"):
        lock()
    process.kill()
    process.wait()
    lock()
    assert f"locked by process {process.pid} on host container-1" in caplog.text


def test_a_lock_that_another_host_has_taken_is_lost(tmp_path, lock):
    held = lock()
    # Its file system does not show that this process holds the lock.
    write(tmp_path, pid=5, host="elsewhere", since="now")
    assert not held.is_intact
    assert held.loss().startswith("it is locked by process 5 on host elsewhere since")
    held.release()
    assert json.loads((tmp_path / "lock").read_text())["pid"] == 5


def test_a_damaged_file_does_not_end_the_lock(tmp_path, lock):
    held = lock()
    (tmp_path / "lock").write_text("{")
    assert held.is_intact


def test_a_copy_of_a_locked_directory_may_be_locked(tmp_path, start, lock):
    (tmp_path / "run").mkdir()
    start(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert lock(tmp_path / "copy").is_intact


def test_threads_may_lock_a_directory_at_once(tmp_path, lock):
    with futures.ThreadPoolExecutor(8) as threads:
        locks = list(threads.map(lambda _: lock(), range(32)))
    assert len(set(map(id, locks))) == 1


def test_a_lock_for_a_while_leaves_one_that_was_held_before(tmp_path, lock):
    with directory_lock.locked(tmp_path):
        assert directory_lock.is_held(tmp_path)
    assert not (tmp_path / "lock").exists()
    held = lock()
    with directory_lock.locked(tmp_path):
        pass
    assert held.is_intact


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "5"', "\0\xff"])
def test_a_damaged_file_is_taken_over(tmp_path, lock, content):
    (tmp_path / "lock").write_text(content)
    lock()
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_a_forked_child_does_not_hold_the_lock(tmp_path, lock):
    held = lock()
    child = os.fork()
    if not child:
        intact = held.is_intact or directory_lock.is_held(tmp_path)
        held.release()
        os._exit(int(intact))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / "lock").exists()


def test_a_lock_outlives_no_process_but_its_own(tmp_path, start, lock):
    # A child of the killed process, such as an environment's worker, still runs.
    script = HOLD.replace("print(", "import os; os.fork() or print(")
    process = start(tmp_path, script)
    process.kill()
    process.wait()
    lock()


def test_a_removed_directory_is_seen_and_may_be_locked_again(tmp_path, lock):
    directory = tmp_path / "run"
    directory.mkdir()
    held = lock(directory)
    (directory / "lock").unlink()
    assert not held.is_intact
    again = lock(directory)
    assert again is not held
    assert again.is_intact


@pytest.fixture
def no_locks(monkeypatch):
    """A file system without locks."""

    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)


def test_without_locks_a_process_that_runs_is_respected(
    tmp_path, start, lock, no_locks
):
    process = start(tmp_path)
    with pytest.raises(
        directory_lock.DirectoryLockedError,
        match=f"process {process.pid} .*without locks.*rm '{tmp_path / 'lock'}'",
    ):
        lock()
    process.kill()
    process.wait()
    lock()
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_without_locks_a_new_directory_is_locked_by_the_file(tmp_path, lock, no_locks):
    lock()
    assert directory_lock.is_held(tmp_path)


def test_without_locks_another_host_is_respected(tmp_path, lock, no_locks):
    write(tmp_path, pid=os.getpid(), host="elsewhere", since="long ago")
    with pytest.raises(
        directory_lock.DirectoryLockedError,
        match=f"host elsewhere since long ago.*rm '{tmp_path / 'lock'}'",
    ):
        lock()
    (tmp_path / "lock").unlink()
    lock()


def test_without_locks_a_directory_is_locked_by_the_file(tmp_path, lock, start):
    refuse = "def flock(*_): raise OSError(38, 'no locks')\n"
    script = f"import fcntl\n{refuse}fcntl.flock = flock\n{HOLD}"
    start(tmp_path, script).communicate()
    assert not (tmp_path / "lock").exists()
    start(tmp_path, script)
    refused = start(tmp_path, script, answer="")
    assert "on a file system without locks" in refused.communicate()[1]
