"""The directories of ended processes are told from the directories of living ones."""

import os
import signal
import subprocess
import sys

import pytest

from tfrl.system import file_lock, locked_directories

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
