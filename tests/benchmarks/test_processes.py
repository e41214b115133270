import sys

import pytest

from benchmarks import processes

WORKER = """
import os, sys, time
from benchmarks.workers import serving

def run(count):
    if count == 13:
        print("what it said last", file=sys.stderr, flush=True)
        os._exit(3)
    if count == 14:
        time.sleep(1000)
    return {"iterations": count}

serving.serve({"task": lambda: serving.Task(run)}, [])
"""


@pytest.fixture
def worker():
    variables = processes.environment_variables()
    made = processes.Worker([sys.executable, "-c", WORKER], variables, timeout=20)
    yield made
    made.close()


def test_a_worker_makes_and_runs_tasks(worker):
    task, facts = worker.make("task", {})
    assert (task, facts) == (0, {})
    assert worker.run(task, 7).counts == {"iterations": 7}
    assert "Python" in worker.versions


def test_a_task_is_made_once(worker):
    assert worker.make("task", {})[0] == worker.make("task", {})[0] == 0


def test_a_failing_request_says_what_the_worker_said(worker):
    with pytest.raises(
        processes.WorkerError, match=r"it said:\n[\s\S]*KeyError: 'other'"
    ):
        worker.make("other", {})
    assert worker.alive


def test_a_dead_worker_says_how_it_ended(worker):
    task, _ = worker.make("task", {})
    with pytest.raises(
        processes.WorkerError, match=r"ended with status 3; it said:\n *what it said"
    ):
        worker.run(task, 13)
    assert not worker.alive


def test_a_worker_that_hangs_is_ended(worker):
    task, _ = worker.make("task", {})
    worker._timeout = 0.2
    with pytest.raises(processes.WorkerError, match="no answer within 0 s"):
        worker.run(task, 14)
    assert not worker.alive


def test_a_missing_environment_says_how_to_make_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TFRL_PEERS", str(tmp_path))
    with pytest.raises(
        processes.WorkerError, match=r"make it with `python -m benchmarks\.peers jax`"
    ):
        processes.Pool(timeout=1).get("jax")


def test_all_get_one_thread_and_no_gpu(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    variables = processes.environment_variables({"XLA_FLAGS": "flags"})
    assert variables["OMP_NUM_THREADS"] == variables["TF_NUM_INTRAOP_THREADS"] == "1"
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
    assert variables["XLA_FLAGS"] == "flags"


def test_a_gpu_is_used_where_it_is_named(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert processes.environment_variables()["CUDA_VISIBLE_DEVICES"] == "1"


def test_another_checkouts_worker_runs_that_checkouts_code(tmp_path):
    workers = tmp_path / "benchmarks" / "workers"
    workers.mkdir(parents=True)
    for package in (workers.parent, workers):
        (package / "__init__.py").touch()
    (workers / "with_tfrl.py").write_text(
        "import json, os, sys, tfrl\n"
        "told = [tfrl.WHOSE, os.getcwd(), os.environ['PYTHONPATH']]\n"
        "print(json.dumps({'ready': {'told': told}}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    (tmp_path / "tfrl").mkdir()
    (tmp_path / "tfrl" / "__init__.py").write_text("WHOSE = 'the other checkout'")
    pool = processes.Pool(timeout=20)
    try:
        worker = pool.get(processes.in_checkout("tfrl:role", tmp_path))
        where = str(tmp_path)
        assert worker.versions["told"] == ["the other checkout", where, where]
        assert list(pool.versions) == [f"tfrl in {tmp_path}"]
    finally:
        pool.close()
