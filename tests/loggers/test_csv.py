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


def test_first_write_fixes_the_columns_in_its_order(path):
    write(
        path, {"step": 0, "loss": 1.5}, {"loss": 2.5, "new": 7, "step": 1}, {"step": 2}
    )
    assert lines(path) == ["step,loss", "0,1.5", "1,2.5", "2,"]


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
    assert lines(path) == ["step,loss", "0,1.0", "1,2.0"]


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_cut_last_line_is_removed_at_the_restart(path, cut):
    write(path, {"step": 0, "loss": 1.0}, {"step": 12, "loss": 2.5})
    path.write_bytes(path.read_bytes()[:-cut])
    write(path, {"step": 13, "loss": 3.0})
    assert lines(path) == ["step,loss", "0,1.0", "13,3.0"]


def test_a_cut_header_is_written_anew(path):
    path.parent.mkdir()
    path.write_text("step,lo")
    write(path, {"step": 0, "loss": 1.0})
    assert lines(path) == ["step,loss", "0,1.0"]


def test_a_directory_gets_a_file_named_after_the_label(tmp_path):
    logger = CSVLogger(tmp_path, label="train")
    logger.write({"step": 0})
    assert lines(tmp_path / "logs" / "train" / "logs.csv") == ["step", "0"]
    assert CSVLogger(logdir=tmp_path, label="train").file_path == logger.file_path


def test_exactly_one_place_is_expected():
    with pytest.raises(ValueError, match=r"directory_or_file: got None.*exactly one"):
        CSVLogger(label="train")


def test_rows_after_the_checkpoint_are_dropped(path):
    write(path, *({"loss": 0.5, "step": step} for step in (10, 20, 30, 40)))
    assert drop_rows_after(path, "step", 20) == 2
    write(path, {"step": 30, "loss": 0.25})
    assert lines(path) == ["loss,step", "0.5,10", "0.5,20", "0.25,30"]
    assert [p.name for p in path.parent.iterdir()] == ["metrics.csv"]


def test_dropping_rows_removes_a_cut_line_too(path):
    write(path, {"step": 10, "loss": 0.5})
    with path.open("a") as file:
        file.write("1")
    assert drop_rows_after(path, "step", 10) == 0
    assert lines(path) == ["step,loss", "10,0.5"]


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
