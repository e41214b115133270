"""The history of a run in its file of JSON lines."""

import numpy as np

from tfrl.reports import run_files
from tfrl.train.runs import history


def test_rows_come_back_from_the_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    written = history.History(path)
    with written.opened():
        written.add({"iteration": 1, "loss": np.float32(0.5), "returns": np.arange(2)})
        written.add({"iteration": 2, "loss": float("nan")})
    rows = [
        {"iteration": 1, "loss": 0.5, "returns": [0, 1]},
        {"iteration": 2, "loss": "nan"},
    ]
    assert run_files.read_rows(path) == rows
    assert history.History(path).rows == rows


def test_rows_that_will_be_measured_again_are_dropped(tmp_path):
    path = tmp_path / "rows.jsonl"
    written = history.History(path)
    with written.opened():
        for iteration in (1, 2, 3):
            written.add({"iteration": iteration})
    rows = written.rows
    written.forget_after(2)
    assert written.rows is rows
    assert run_files.read_rows(path) == rows == [{"iteration": 1}, {"iteration": 2}]


def test_a_line_that_a_killed_run_left_unfinished_is_skipped(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"iteration": 1}\n{"iterat')
    assert run_files.read_rows(path) == [{"iteration": 1}]
    assert run_files.read_rows(tmp_path / "none.jsonl") == []
