"""CSVLogger: what is in the file after restarts and kills."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tfrl.loggers import CSVLogger, csv, drop_rows_after


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "metrics.csv"


def write(path, *rows):
    logger = CSVLogger(path)
    for row in rows:
        logger.write(row)
    logger.close()


def lines(path):
    return path.read_text().splitlines()


def test_columns_are_sorted_and_a_missing_key_leaves_its_place_empty(path):
    write(path, {"step": 0, "loss": 1.5}, {"loss": 2.5, "step": 1}, {"step": 2})
    assert lines(path) == ["loss,step", "1.5,0", "2.5,1", ",2"]


def test_columns_may_keep_the_order_of_the_first_write(path):
    logger = CSVLogger(path, sort_columns=False)
    logger.write({"step": 0, "loss": 1.5})
    logger.write({"loss": 2.5, "step": 1})
    assert lines(path) == ["step,loss", "0,1.5", "1,2.5"]


def test_a_further_key_gets_a_column_that_is_empty_in_the_earlier_rows(path):
    write(path, {"step": 0}, {"step": 1, "b": 7, "a": 8}, {"step": 2, "a": 9})
    assert lines(path) == ["step,a,b", "0,,", "1,8,7", "2,9,"]
    write(path, {"step": 3, "c": 5})
    assert lines(path) == ["step,a,b,c", "0,,,", "1,8,7,", "2,9,,", "3,,,5"]
    assert [p.name for p in path.parent.iterdir()] == ["metrics.csv"]


def test_rows_are_in_the_file_at_once(path):
    logger = CSVLogger(path)
    logger.write({"step": 0})
    assert lines(path) == ["step", "0"]
    assert logger.file_path == str(path)


def test_tensors_and_numpy_scalars_become_plain_numbers(path):
    write(path, {"a": tf.constant(3), "b": np.float32(0.5), "c": np.array([2])})
    assert lines(path) == ["a,b,c", "3,0.5,2"]


def test_a_restart_continues_under_the_old_header(path):
    write(path, {"step": 0, "loss": 1.0})
    write(path, {"loss": 2.0, "step": 1})
    assert lines(path) == ["loss,step", "1.0,0", "2.0,1"]


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_cut_last_line_is_removed_at_the_restart(path, cut):
    write(path, {"step": 0, "loss": 1.0}, {"step": 12, "loss": 2.5})
    path.write_bytes(path.read_bytes()[:-cut])
    write(path, {"step": 13, "loss": 3.0})
    assert lines(path) == ["loss,step", "1.0,0", "3.0,13"]


@pytest.mark.filterwarnings("ignore:CSV FILE CUT")
@pytest.mark.parametrize("text", ["one\ntwo\n\nthree", 'a "b\n", c\r\nd'])
def test_a_cut_row_of_several_lines_is_removed_at_the_restart(path, text):
    write(path, {"note": "x\ny", "step": 0})
    start = len(path.read_bytes())
    write(path, {"note": text, "step": 1})
    content = path.read_bytes()
    for cut in range(start, len(content)):
        path.write_bytes(content[:cut])
        write(path, {"note": "whole", "step": 2})
        assert csv.read_rows(path) == [
            ["note", "step"],
            ["x\ny", "0"],
            ["whole", "2"],
        ]
        path.write_bytes(content[:cut])
        assert drop_rows_after(path, "step", 5) == 0
        assert path.read_bytes() == content[:start]


def test_lines_that_are_left_out_are_told(path):
    path.parent.mkdir()
    path.write_text('step,note\n0,a\n1,"b\n2,c\n3,d\n')
    with pytest.warns(
        RuntimeWarning, match=r"metrics.csv ends within .* row 3; the last 3 lines, f"
    ):
        assert csv.read_rows(path) == [["step", "note"], ["0", "a"]]


def test_a_cut_header_is_written_anew(path):
    path.parent.mkdir()
    path.write_text("step,lo")
    write(path, {"step": 0, "loss": 1.0})
    assert lines(path) == ["loss,step", "1.0,0"]


def test_a_directory_gets_a_file_named_after_the_label(tmp_path):
    logger = CSVLogger(tmp_path, label="train", add_uid=False)
    logger.write({"step": 0})
    assert lines(tmp_path / "logs" / "train" / "logs.csv") == ["step", "0"]


def test_the_file_in_a_directory_is_below_the_identifier_of_the_run(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TFRL_ID", "run7")
    logger = CSVLogger(logdir=tmp_path, label="train")
    assert logger.file_path == str(tmp_path / "run7" / "logs" / "train" / "logs.csv")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert CSVLogger(label="train").file_path == str(
        tmp_path / "home" / "tfrl" / "run7" / "logs" / "train" / "logs.csv"
    )


def test_at_most_one_place_is_expected(tmp_path):
    with pytest.raises(ValueError, match=r"directory_or_file: got .* at most one"):
        CSVLogger(tmp_path, logdir=tmp_path)


def test_an_open_file_is_appended_to_and_stays_open(path):
    path.parent.mkdir()
    with path.open("a") as file:
        logger = CSVLogger(file)
        assert logger.file_path == str(path)
        logger.write({"b": 1, "a": 2})
        with pytest.warns(RuntimeWarning, match=r"got the further keys \['c'\]"):
            logger.write({"a": 3, "c": 4})
        logger.close()
        assert not file.closed
    assert lines(path) == ["a,b", "2,1", "3,"]


def test_a_file_open_for_writing_is_refused(path):
    path.parent.mkdir()
    with path.open("w") as file, pytest.raises(ValueError, match="mode 'w', expected"):
        CSVLogger(file)


def test_rows_within_the_time_delta_are_dropped(path, monkeypatch):
    logger = CSVLogger(path, time_delta=5)
    for second in (1000, 1004, 1005):
        monkeypatch.setattr("time.monotonic", lambda now=second: now)
        logger.write({"t": second})
    assert lines(path) == ["t", "1000", "1005"]


def test_rows_are_handed_over_after_flush_every_writes(path):
    logger = CSVLogger(path, flush_every=2)
    logger.write({"t": 0})
    assert lines(path) == []
    logger.write({"t": 1})
    assert lines(path) == ["t", "0", "1"]
    with pytest.raises(ValueError, match="flush_every: got 0"):
        CSVLogger(path, flush_every=0)


def test_rows_after_the_checkpoint_are_dropped(path):
    write(path, *({"loss": 0.5, "step": step} for step in (10, 20, 30, 40)))
    assert drop_rows_after(path, "step", 20) == 2
    write(path, {"step": 30, "loss": 0.25})
    assert lines(path) == ["loss,step", "0.5,10", "0.5,20", "0.25,30"]
    assert [p.name for p in path.parent.iterdir()] == ["metrics.csv"]


def test_rows_without_a_number_are_dropped_with_a_warning(path):
    path.parent.mkdir()
    path.write_text("step,loss\n1,0.5\n\n2x,0.25\n3,0.125\n")
    with pytest.warns(RuntimeWarning, match=r"has 1 rows .* column 'step'.*'2x'"):
        assert drop_rows_after(path, "step", 3) == 2
    assert lines(path) == ["step,loss", "1,0.5", "3,0.125"]


def test_dropping_rows_removes_a_cut_line_too(path):
    write(path, {"step": 10, "loss": 0.5})
    with path.open("a") as file:
        file.write("1")
    assert drop_rows_after(path, "step", 10) == 0
    assert lines(path) == ["loss,step", "0.5,10"]


def test_dropping_rows_without_a_file_or_header_does_nothing(path):
    assert drop_rows_after(path, "step", 10) == 0
    path.parent.mkdir()
    path.touch()
    assert drop_rows_after(path, "step", 10) == 0


def test_dropping_by_an_unknown_column_names_the_columns(path):
    write(path, {"step": 10})
    with pytest.raises(ValueError, match=r"column: got 'steps'.*\['step'\]"):
        drop_rows_after(path, "steps", 10)


@pytest.mark.parametrize("content", [b"\xff\xfe\nx", b'a,"\x00\xff\n'])
def test_a_file_that_is_not_text_is_named_and_stays_as_it_is(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    for read in (
        csv.read_rows,
        csv.CSVLogger,
        lambda p: csv.drop_rows_after(p, "a", 1),
    ):
        with pytest.raises(
            ValueError,
            match=rf"^{re.escape(str(path))}: cannot be read .* expected a CSV",
        ):
            read(path)
    assert path.read_bytes() == content


def test_rows_are_read_without_a_cut_last_line(path):
    path.parent.mkdir()
    path.write_bytes(b"a,b\r\n1,\r\n2")
    assert csv.read_rows(path) == [["a", "b"], ["1", ""]]
    path.write_text("")
    assert csv.read_rows(path) == []
