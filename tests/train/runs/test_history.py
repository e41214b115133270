"""The history of a run in its file of JSON lines."""

import numpy as np
import pytest

from tfrl.train.runs import history, run_files


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


def add(path, row):
    written = history.History(path)
    with written.opened():
        written.add(row)


@pytest.mark.parametrize(
    ("last", "kept"), [('{"iterat', []), ('{"iteration": 2}', [{"iteration": 2}])]
)
def test_a_row_after_a_cut_line_is_not_lost(tmp_path, last, kept):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"iteration": 1}\n' + last)
    add(path, {"iteration": 3})
    assert run_files.read_rows(path) == [{"iteration": 1}, *kept, {"iteration": 3}]
    assert len(path.read_text().splitlines()) == 2 + len(kept)


def test_a_byte_that_is_not_utf_8_does_not_stop_a_run_that_resumes(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"iteration": 1}\n{"iteration": 2, "\xff": 1}\n{"iteration": 3}\n'
    )
    with pytest.warns(RuntimeWarning, match=rf"^{path}: line 2: "):
        resumed = history.History(path)
    resumed.forget_after(1)
    with resumed.opened():
        resumed.add({"iteration": 2, "loss": float("inf")})
    rows = [{"iteration": 1}, {"iteration": 2, "loss": "inf"}]
    assert run_files.read_rows(path) == resumed.rows == rows
