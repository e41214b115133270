"""Loggers that print, keep, filter, dispatch and write for TensorBoard."""

import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfrl import loggers


@pytest.fixture
def memory():
    return loggers.InMemoryLogger()


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that loggers see with `clock(seconds)`."""

    def set_time(seconds):
        monkeypatch.setattr("time.monotonic", lambda: seconds)

    set_time(1000.0)
    return set_time


def test_terminal_prints_label_titles_and_three_digits():
    printed = []
    logger = loggers.TerminalLogger("training_run", print_fn=printed.append)
    logger.write({"env_steps": 12, "loss": 0.12345, "done": tf.constant(2.0)})
    assert printed == ["[Training Run] Done = 2.000 | Env Steps = 12 | Loss = 0.123"]


def test_terminal_prints_the_first_write_and_then_every_time_delta(clock):
    printed = []
    logger = loggers.TerminalLogger(print_fn=printed.append, time_delta=5)
    for second in (1000, 1004, 1005, 1009, 1010):
        clock(second)
        logger.write({"t": second})
    assert printed == ["T = 1000", "T = 1005", "T = 1010"]


def test_time_filter_passes_the_first_write_and_then_every_time_delta(memory, clock):
    logger = loggers.TimeFilter(memory, 5)
    for second in (1000, 1004, 1005):
        clock(second)
        logger.write({"t": second})
    assert memory.data == [{"t": 1000}, {"t": 1005}]


def test_time_filter_refuses_negative_time(memory):
    with pytest.raises(ValueError, match="time_delta: got -1"):
        loggers.TimeFilter(memory, -1)


def test_none_filter_leaves_out_nones_and_empty_writes(memory):
    logger = loggers.NoneFilter(memory)
    logger.write({"a": 1, "b": None})
    logger.write({"b": None})
    assert memory.data == [{"a": 1}]


def test_key_filter_keeps_or_drops(memory):
    loggers.KeyFilter(memory, keep=["a"]).write({"a": 1, "b": 2})
    loggers.KeyFilter(memory, drop=["a"]).write({"a": 1, "b": 2})
    assert memory.data == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("keys", [{}, {"keep": ["a"], "drop": ["b"]}])
def test_key_filter_wants_exactly_one_list(memory, keys):
    with pytest.raises(ValueError, match=r"keep, drop: got .* exactly one"):
        loggers.KeyFilter(memory, **keys)


def passed(memory, logger, num_writes):
    """The numbers of the writes that reach `memory`."""
    for i in range(num_writes):
        logger.write({"i": i})
    return [values["i"] for values in memory.data]


def test_gated_filter_asks_its_gate_about_the_number_of_the_write(memory):
    logger = loggers.GatedFilter(memory, lambda number: number in (0, 2))
    assert passed(memory, logger, 4) == [0, 2]


def test_a_periodic_gate_passes_the_first_of_every_interval(memory):
    logger = loggers.GatedFilter.periodic(memory, interval=3)
    assert passed(memory, logger, 8) == [0, 3, 6]


def test_a_logarithmic_gate_passes_the_multiples_of_the_magnitude(memory):
    logger = loggers.GatedFilter.logarithmic(memory, n=10)
    expected = [*range(10), *range(10, 100, 10), *range(100, 1000, 100), 1000]
    assert passed(memory, logger, 1999) == expected


def test_step_filter_passes_the_first_write_and_then_every_step_delta(memory):
    logger = loggers.StepFilter(memory, 100, steps_key="step")
    for step in (7, 50, tf.constant(106), np.int64(107), 206, 450):
        logger.write({"step": step})
    assert [values["step"] for values in memory.data] == [7, 107, 450]


def test_step_filter_wants_a_step_and_no_negative_difference(memory):
    with pytest.raises(ValueError, match=r"got the keys \['loss'\].*'steps'"):
        loggers.StepFilter(memory, 10).write({"loss": 1.0})
    with pytest.raises(ValueError, match=r"step_delta: .* got -1"):
        loggers.StepFilter(memory, -1)


def test_dispatcher_writes_to_all_and_closing_reaches_through_filters():
    class Closing(loggers.InMemoryLogger):
        closed = False

        def close(self):
            self.closed = True

    first, second = Closing(), Closing()
    logger = loggers.Dispatcher([first, loggers.NoneFilter(second)])
    logger.write({"a": 1})
    logger.close()
    assert first.data == second.data == [{"a": 1}]
    assert first.closed
    assert second.closed


def test_dispatcher_serializes_once_for_all(memory):
    logger = loggers.Dispatcher([memory, memory], lambda values: {"n": len(values)})
    logger.write({"a": 1, "b": 2})
    assert memory.data == [{"n": 2}, {"n": 2}]


def test_constants_are_added_and_may_be_replaced(memory):
    logger = loggers.ConstantLogger({"level": "maze", "seed": 1}, memory)
    logger.write({"seed": 2, "loss": 0.5})
    assert memory.data == [{"level": "maze", "seed": 2, "loss": 0.5}]


def test_a_silent_logger_takes_anything():
    logger = loggers.NoOpLogger()
    logger.write({"a": object()})
    logger.close()


KINDS = {
    "python": (0.5, 3, True, "text", None),
    "numpy": (
        np.float32(0.5),
        np.int64(3),
        np.bool_(True),
        np.str_("text"),
        None,
    ),
    "arrays": (
        np.array([0.5]),
        np.array(3, np.uint8),
        np.array(True),
        np.array("text"),
        None,
    ),
    "tensors": (
        tf.constant(0.5),
        tf.constant([3]),
        tf.constant(True),
        tf.constant("text"),
        None,
    ),
    "variables": (
        tf.Variable(0.5),
        tf.Variable(3, dtype=tf.int64),
        tf.Variable(True),
        tf.Variable("text"),
        None,
    ),
    "bfloat16": (tf.constant(0.5, tf.bfloat16), 3, True, "text", None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_are_printed_kept_and_written(kind, memory, tmp_path):
    printed = []
    table = loggers.CSVLogger(tmp_path / "table.csv")
    logger = loggers.Dispatcher(
        [loggers.TerminalLogger(print_fn=printed.append), memory, table]
    )
    values = dict(zip("abcde", KINDS[kind], strict=True))
    logger.write(values)
    assert printed == ["A = 0.500 | B = 3 | C = True | D = text | E = None"]
    assert memory.data == [{"a": 0.5, "b": 3, "c": True, "d": "text", "e": None}]
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines == ["a,b,c,d,e", "0.5,3,True,text,"]


def test_tensors_in_a_nest_become_arrays():
    nest = {"x": tf.zeros([2]), "y": [tf.Variable(3), "text", None]}
    found = loggers.to_numpy(nest)
    np.testing.assert_array_equal(found["x"], np.zeros(2))
    assert found["y"] == [3, "text", None]
    assert not tf.is_tensor(found["y"][0])


def test_memory_keeps_copies_as_plain_numbers(memory):
    values = {"a": np.float32(0.5)}
    memory.write(values)
    values["a"] = 7
    assert memory.data == [{"a": 0.5}]


def scalars(path):
    events = EventAccumulator(str(path)).Reload()
    return {
        tag: [
            (e.step, tf.make_ndarray(e.tensor_proto).item())
            for e in events.Tensors(tag)
        ]
        for tag in events.Tags()["tensors"]
    }


def test_summaries_use_the_step_key(tmp_path):
    logger = loggers.TFSummaryLogger(tmp_path, label="train", steps_key="step")
    logger.write({"step": 10, "loss": 0.5, "note": "text"})
    logger.write({"step": np.int64(20), "loss": tf.constant(0.25)})
    logger.close()
    assert scalars(tmp_path) == {"train/loss": [(10, 0.5), (20, 0.25)]}


def test_summaries_without_a_step_key_count_writes(tmp_path):
    logger = loggers.TFSummaryLogger(tmp_path, label="")
    logger.write({"a": 1})
    logger.write({"a": 2})
    logger.close()
    assert scalars(tmp_path) == {"a": [(0, 1), (1, 2)]}


def test_a_step_is_not_kept_by_tensorflow(tmp_path):
    logger = loggers.TFSummaryLogger(tmp_path, steps_key="step")
    step = int("123456789")
    before = sys.getrefcount(step)
    logger.write({"step": step, "loss": 0.5})
    logger.close()
    assert sys.getrefcount(step) == before


def test_summaries_miss_their_step_key(tmp_path):
    logger = loggers.TFSummaryLogger(tmp_path, steps_key="step")
    with pytest.raises(ValueError, match=r"got the keys \['loss'\].*'step'"):
        logger.write({"loss": 1.0})


@pytest.mark.parametrize("name", ["InMemoryLogger", "TerminalLogger"])
def test_loggers_follow_the_protocol(name):
    assert isinstance(getattr(loggers, name)(), loggers.Logger)
