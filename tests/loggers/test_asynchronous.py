"""AsyncLogger and AutoCloseLogger: nothing is lost, and errors are seen."""

import contextlib
import gc
import subprocess
import sys
import threading

import pytest

from tfrl import loggers


class Recorder(loggers.InMemoryLogger):
    """Keeps what is written, on which thread, and how often it was closed."""

    def __init__(self, gate=None):
        super().__init__()
        self.gate = gate
        self.threads = set()
        self.times_closed = 0

    def write(self, values):
        if self.gate is not None:
            self.gate.wait()
        self.threads.add(threading.current_thread())
        super().write(values)

    def close(self):
        self.times_closed += 1


def test_writes_happen_in_order_on_another_thread_before_close_returns():
    recorder = Recorder()
    logger = loggers.AsyncLogger(recorder)
    for i in range(20):
        logger.write({"i": i})
    logger.close()
    assert [values["i"] for values in recorder.data] == list(range(20))
    assert threading.current_thread() not in recorder.threads
    assert recorder.times_closed == 1


def test_a_write_does_not_wait_and_keeps_its_values():
    gate = threading.Event()
    recorder = Recorder(gate)
    logger = loggers.AsyncLogger(recorder, queue_size=2)
    values = {"i": 0}
    logger.write(values)
    values["i"] = 7
    assert recorder.data == []
    gate.set()
    logger.close()
    assert recorder.data == [{"i": 0}]


class Failing(Recorder):
    def write(self, values):
        raise OSError("no space left")


def test_an_error_is_raised_once_by_a_later_call():
    logger = loggers.AsyncLogger(Failing())
    logger.write({"i": 0})
    with pytest.raises(OSError, match="no space left"):
        logger.close()
    logger.close()


def test_a_failing_logger_makes_nobody_wait_for_the_queue():
    logger = loggers.AsyncLogger(Failing(), queue_size=1)

    def write_many():
        for i in range(1000):
            logger.write({"i": i})

    with pytest.raises(OSError, match="no space left"):
        write_many()
    with contextlib.suppress(OSError):
        logger.close()


def test_a_closed_logger_refuses_writes_and_may_be_closed_again():
    recorder = Recorder()
    logger = loggers.AsyncLogger(recorder)
    logger.close()
    logger.close()
    assert recorder.times_closed == 1
    with pytest.raises(ValueError, match="write was called after close"):
        logger.write({"i": 0})


class Leaving(Recorder):
    def write(self, values):
        raise SystemExit(3)


def test_an_error_that_would_end_the_thread_is_raised_too():
    logger = loggers.AsyncLogger(Leaving())
    logger.write({"i": 0})
    with pytest.raises(SystemExit):
        logger.close()


def test_the_end_of_the_program_waits_for_a_logger_that_was_not_closed(tmp_path):
    path = tmp_path / "logs.csv"
    code = f"""
from tfrl import loggers
logger = loggers.AsyncLogger(loggers.CSVLogger(open({str(path)!r}, "a")))
for step in range(50):
    logger.write({{"steps": step}})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.read_text().splitlines() == ["steps", *map(str, range(50))]


def test_a_queue_without_places_is_refused():
    with pytest.raises(ValueError, match=r"queue_size: .* got 0"):
        loggers.AsyncLogger(Recorder(), queue_size=0)


def test_a_deleted_logger_closes_the_one_behind_it_once():
    recorder = Recorder()
    logger = loggers.AutoCloseLogger(recorder)
    logger.write({"i": 0})
    assert recorder.times_closed == 0
    del logger
    gc.collect()
    assert recorder.times_closed == 1
    logger = loggers.AutoCloseLogger(recorder)
    logger.close()
    logger.close()
    del logger
    gc.collect()
    assert recorder.times_closed == 2
    assert recorder.data == [{"i": 0}]


def test_the_end_of_the_program_waits_for_the_default_asynchronous_logger(tmp_path):
    code = """
from tfrl import loggers
logger = loggers.make_default_logger("train", time_delta=0, asynchronous=True)
for step in range(50):
    logger.write({"steps": step, "loss": None})
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(tmp_path), "TFRL_ID": "run", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[Train] Steps = 49"
    path = tmp_path / "tfrl" / "run" / "logs" / "train" / "logs.csv"
    assert path.read_text().splitlines() == ["steps", *map(str, range(50))]
