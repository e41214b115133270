"""The folder of processes that are killed; they are real ones."""

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from tfrl.system import function_process, temporary_folders


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_killed_process_leaves_its_files_in_the_folder_alone(parent):
    def work(folder, is_stopped):
        temporary_folders.use(folder)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            assert file.name.startswith(os.environ["TMPDIR"])
        os.kill(os.getpid(), signal.SIGKILL)

    with temporary_folders.make() as folder:
        process = function_process.FunctionProcess(
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
        "import os; from tfrl.system import temporary_folders as t; made = t.make(); "
        "made.__enter__(); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(parent)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    [left] = os.listdir(parent)
    with temporary_folders.make(), temporary_folders.make():
        assert left not in os.listdir(parent)
        assert len(os.listdir(parent)) == 2  # They do not remove each other.
