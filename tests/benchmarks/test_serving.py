import json
import pathlib
import subprocess
import sys

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
