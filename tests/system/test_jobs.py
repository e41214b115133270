"""Modules that run as child processes, some at the same time."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from tfrl.system import jobs

# Counts who runs beside it, says who it is, and ends with the status that it is given.
MODULE = """
import os, pathlib, signal, sys, time
folder, name, status = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
(folder / f"{name}.running").touch()
if status < 0:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
time.sleep(0.2)
print(name, len(list(folder.glob("*.running"))), flush=True)
print("bad", file=sys.stderr)
(folder / f"{name}.running").unlink()
sys.exit(status)
"""


@pytest.fixture
def make_jobs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_job.py").write_text(MODULE)

    def make(*statuses):
        return [
            jobs.Job("a_job", [str(tmp_path), str(i), str(s)], tmp_path / f"{i}.txt")
            for i, s in enumerate(statuses)
        ]

    return make


def test_all_jobs_run_and_at_most_so_many_at_once(make_jobs):
    made, ended = make_jobs(0, 3, 0, 0, 0), []
    statuses = jobs.run_all(made, 2, lambda: False, lambda *end: ended.append(end))
    assert statuses == [0, 3, 0, 0, 0]
    assert sorted(ended) == list(enumerate(statuses))
    for i, job in enumerate(made):
        (name, beside), bad = map(str.split, job.output.read_text().splitlines())
        assert (int(name), bad) == (i, ["bad"])
        assert 1 <= int(beside) <= 2


def is_ready(job):
    return job.output.exists() and "ready" in job.output.read_text()


def test_a_stop_lets_the_running_jobs_end_and_starts_no_others(make_jobs):
    made = make_jobs(-1, -1, -1)
    statuses = jobs.run_all(
        made, 2, lambda: is_ready(made[0]) and is_ready(made[1]), lambda *_: None
    )
    assert statuses == [7, 7, None]


def test_an_exception_ends_the_jobs(make_jobs):
    made, processes = make_jobs(-1), []
    others = set(children_of(os.getpid()))

    def fail():
        if is_ready(made[0]):
            processes.extend(set(children_of(os.getpid())) - others)
            raise ZeroDivisionError
        return False

    with pytest.raises(ZeroDivisionError):
        jobs.run_all(made, 2, fail, lambda *_: None)
    assert len(processes) == 1
    assert not is_running(processes[0])


def children_of(process):
    path = pathlib.Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()]


def is_running(process):
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_the_jobs_end_when_this_process_is_killed(make_jobs, tmp_path):
    (job,) = make_jobs(-1)
    script = f"""
import pathlib
from tfrl.system import jobs
job = jobs.Job("a_job", {job.arguments!r}, pathlib.Path({str(job.output)!r}))
jobs.run_all([job], 1, lambda: False, print)
"""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": paths}
    )
    while not is_ready(job):
        assert parent.poll() is None
        time.sleep(0.02)
    (child,) = children_of(parent.pid)
    parent.kill()
    parent.wait()
    while is_running(child):
        time.sleep(0.02)


def test_paused_jobs_stand_still_and_go_on(tmp_path, monkeypatch):
    """The job counts as fast as it can; while it is paused, the count stays."""
    monkeypatch.syspath_prepend(tmp_path)
    code = "import os\nwhile not os.path.exists('stop'):\n    os.write(1, b'.')\n"
    (tmp_path / "counting_job.py").write_text(code.replace("stop", f"{tmp_path}/stop"))
    job = jobs.Job("counting_job", [], tmp_path / "count.txt")
    sizes = []

    def is_paused():
        if job.output.exists() and job.output.stat().st_size:
            sizes.append(job.output.stat().st_size)
        if len(sizes) == 6:
            (tmp_path / "stop").touch()
        return 1 <= len(sizes) <= 5

    ended = jobs.run_all([job], 1, lambda: False, lambda *_: None, is_paused=is_paused)
    assert ended == [0]
    assert sizes[0] <= sizes[2] == sizes[3] == sizes[4] == sizes[5]
    assert job.output.stat().st_size >= sizes[5]
