"""Loggers that print, keep, filter, dispatch and write for TensorBoard."""

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
    assert printed == ["[Training Run] Env Steps = 12 | Loss = 0.123 | Done = 2.000"]


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


def test_gated_filter_asks_its_gate(memory):
    gate = iter([True, False, True])
    logger = loggers.GatedFilter(memory, lambda: next(gate))
    for i in range(3):
        logger.write({"i": i})
    assert memory.data == [{"i": 0}, {"i": 2}]


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


def test_summaries_miss_their_step_key(tmp_path):
    logger = loggers.TFSummaryLogger(tmp_path, steps_key="step")
    with pytest.raises(ValueError, match=r"got the keys \['loss'\].*'step'"):
        logger.write({"loss": 1.0})


@pytest.mark.parametrize("name", ["InMemoryLogger", "TerminalLogger"])
def test_loggers_follow_the_protocol(name):
    assert isinstance(getattr(loggers, name)(), loggers.Logger)
