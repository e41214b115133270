import json
import pathlib
import subprocess
import sys

from benchmarks.workers import serving

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
WORKER = """
from benchmarks.workers import serving

def make(step):
    print("noise on standard output")
    return serving.Task(lambda count: {"iterations": count * step}, {"step": step})

serving.serve({"stepping": make}, ["numpy"], {"threads": 1})
"""


def _converse(*requests):
    result = subprocess.run(
        [sys.executable, "-c", WORKER],
        input="".join(json.dumps(request) + "\n" for request in requests),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_request_is_answered_by_one_line():
    ready, made, ran = _converse(
        {"make": "stepping", "settings": {"step": 3}}, {"run": 0, "count": 5}
    )
    assert ready["ready"].keys() == {"Python", "numpy", "threads"}
    assert made == {"made": 0, "facts": {"step": 3}}
    assert ran["counts"] == {"iterations": 15}
    assert ran["seconds"] > 0
    assert ran["cpu_seconds"] >= 0


def test_a_request_that_fails_is_answered_and_the_next_one_done():
    _, failed, made = _converse(
        {"make": "stepping", "settings": {"stride": 3}},
        {"make": "stepping", "settings": {"step": 1}},
    )
    assert "unexpected keyword argument 'stride'" in failed["error"]
    assert made["made"] == 0


def test_what_is_prepared_is_not_measured(tmp_path):
    code = """
import time
from benchmarks.workers import serving

said = []
task = serving.Task(
    lambda count: {"prepared": len(said)},
    prepare=lambda: (said.append(1), time.sleep(0.2)),
)
serving.serve({"task": lambda: task}, [])
"""
    requests = '{"make": "task", "settings": {}}\n' + 2 * '{"run": 0, "count": 1}\n'
    result = subprocess.run(
        [sys.executable, "-c", code],
        input=requests,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    *_, first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert first["counts"] == {"prepared": 1}
    assert second["counts"] == {"prepared": 2}
    assert second["seconds"] < 0.2


def test_a_call_is_repeated_and_counted():
    calls = []
    assert serving.calling(lambda: calls.append(1)).run(3) == {"calls": 3}
    assert len(calls) == 3
