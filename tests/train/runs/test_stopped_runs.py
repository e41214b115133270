"""The record of runs that callbacks have stopped, damaged."""

import json

import pytest

from tfrl.train.runs import run_length, stopped_runs

LENGTH = run_length.RunLength(20, None)
STOP = stopped_runs.Stop(LENGTH, 10, 40, "Stop (enough)")


def test_a_stop_is_found_again(tmp_path):
    stopped_runs.mark(tmp_path, STOP)
    assert stopped_runs.find(tmp_path, LENGTH) == STOP


@pytest.mark.parametrize(
    "changes",
    [
        {"iteration": "ten"},
        {"environment_steps": None},
        {"length": {"num_iterations": [20], "num_environment_steps": None}},
        {"length": 20},
        {"more": 1},
    ],
)
def test_a_damaged_record_is_none(tmp_path, changes):
    stopped_runs.mark(tmp_path, STOP)
    path = tmp_path / stopped_runs.NAME
    (record,) = json.loads(path.read_text())
    path.write_text(json.dumps([{**record, **changes}]))
    assert stopped_runs.find(tmp_path, LENGTH) is None


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"a": 1}', "3", "[null]"])
def test_a_file_of_something_else_is_none(tmp_path, text):
    (tmp_path / stopped_runs.NAME).write_text(text)
    assert stopped_runs.find(tmp_path, LENGTH) is None
