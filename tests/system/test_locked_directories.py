"""The directories of ended processes are told from the directories of living ones."""

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from tfrl.system import child_process, file_lock, locked_directories

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks directories")

MAKE = """
import sys, time
from tfrl.system import locked_directories
path, lock = locked_directories.make_temporary("mine-", sys.argv[1])
print(path, flush=True)
time.sleep(100)
"""


def test_a_directory_is_abandoned_when_its_process_is_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    path = process.stdout.readline().strip()
    assert os.path.dirname(path) == str(tmp_path)
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert locked_directories.abandoned(str(tmp_path), "mine-*") == []
    locked_directories.remove_temporary("mine-", str(tmp_path))
    assert os.path.isdir(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert locked_directories.abandoned(str(tmp_path), "other-*") == []
    assert locked_directories.abandoned(str(tmp_path), "mine-*") == [path]
    locked_directories.remove_temporary("mine-", str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_directory_is_abandoned_although_a_fork_of_its_process_runs(tmp_path):
    script = MAKE.replace("print(", "import os; os.fork() or print(")
    script = script.replace("time.sleep(100)", "sys.stdin.read()")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    path = process.stdout.readline().strip()
    assert locked_directories.abandoned(str(tmp_path), "mine-*") == []
    process.kill()
    process.wait()
    assert locked_directories.abandoned(str(tmp_path), "mine-*") == [path]
    process.communicate()


def test_a_lock_keeps_others_of_the_same_process_out_too(tmp_path):
    path = str(tmp_path / "made")
    lock = locked_directories.make(path)
    with pytest.raises(OSError, match="temporarily unavailable"):
        locked_directories.lock(path)
    assert locked_directories.abandoned(str(tmp_path), "*") == []
    lock.release()
    assert locked_directories.abandoned(str(tmp_path), "*") == [path]


def test_only_own_directories_of_make_temporary_are_deleted(tmp_path, monkeypatch):
    made, lock = locked_directories.make_temporary("x-", str(tmp_path))
    lock.release()
    (tmp_path / "x-of-a-user").mkdir()
    (tmp_path / "x-file").write_text("")
    (tmp_path / "x-link").symlink_to(made)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 12345)
        locked_directories.remove_temporary("x-", str(tmp_path))
    assert os.path.isdir(made)
    locked_directories.remove_temporary("x-", str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["x-file", "x-link", "x-of-a-user"]
    locked_directories.remove_temporary("x-", str(tmp_path / "missing"))


def test_where_nothing_can_be_locked_nothing_counts_as_abandoned(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("No locks available")

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    path, lock = locked_directories.make_temporary("x-", str(tmp_path))
    assert lock is None
    assert os.listdir(tmp_path) == [os.path.basename(path)]
    assert locked_directories.abandoned(str(tmp_path), "*") == []


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_killed_process_leaves_its_files_in_the_folder_alone(parent):
    def work(folder, is_stopped):
        locked_directories.use_temporary(folder)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            assert file.name.startswith(os.environ["TMPDIR"])
        os.kill(os.getpid(), signal.SIGKILL)

    with locked_directories.temporary() as folder:
        process = child_process.FunctionProcess(
            functools.partial(work, folder), "worker"
        )
        deadline = time.monotonic() + 60
        while (ending := process.poll()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.stop(0.0)
        assert ending.how == "was killed by SIGKILL"
        assert os.listdir(parent) == [os.path.basename(folder)]
        assert any(name.startswith("tmp") for name in os.listdir(folder))
    assert os.listdir(parent) == []


def test_the_next_folder_removes_those_of_makers_that_were_killed(parent):
    code = (
        "import os; from tfrl.system import locked_directories as t; "
        "made = t.temporary(); made.__enter__(); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(parent)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    [left] = os.listdir(parent)
    with locked_directories.temporary(), locked_directories.temporary():
        assert left not in os.listdir(parent)
        assert len(os.listdir(parent)) == 2  # They do not remove each other.
