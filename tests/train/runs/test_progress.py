import contextlib
import io
import os
import re
import termios

from tfrl.train.loops import training_loop
from tfrl.train.runs import progress


def info(iteration):
    return training_loop.IterationInfo(
        iteration, iteration, 2 * iteration, 3, 21.5, 0.1
    )


def test_where_there_is_no_terminal_lines_are_written():
    stream = io.StringIO()
    bar = progress.Progress(0, 2000, stream, seconds_between_lines=0.0)
    bar.evaluated(30.0, 40.0)
    bar.update(info(500))
    assert re.fullmatch(
        r"iteration 500 of 2,000 \([\d,]+ a second\), 1,000 environment steps: "
        r"return 21.5, evaluation 30.0 \(best 40.0\)\n",
        stream.getvalue(),
    )


def test_no_return_of_the_untrained_policy_is_the_best():
    stream = io.StringIO()
    bar = progress.Progress(0, 2000, stream, seconds_between_lines=0.0)
    bar.evaluated(30.0, None)
    bar.update(info(500))
    assert stream.getvalue().endswith(", evaluation 30.0 (untrained)\n")


def test_lines_keep_their_distance():
    stream = io.StringIO()
    bar = progress.Progress(0, 2000, stream, seconds_between_lines=1000.0)
    bar.update(info(500))
    bar.update(info(1000))
    assert stream.getvalue() == ""


def test_a_new_activity_is_told_without_delay_and_once():
    stream = io.StringIO()
    bar = progress.Progress(0, 2000, stream, seconds_between_lines=1000.0)
    for activity in ("compiling", "training", "compiling", "training"):
        bar.begin(activity)
    assert stream.getvalue() == (
        "iteration 0 of 2,000: compiling\niteration 0 of 2,000: training\n"
    )


def read_all(terminal):
    """What was written to a pseudo-terminal whose other end is closed; closes it."""
    chunks = []
    with contextlib.suppress(OSError):  # The end of a terminal is an error on Linux.
        while chunk := os.read(terminal, 10000):
            chunks.append(chunk)
    os.close(terminal)
    return b"".join(chunks).decode()


def test_on_a_terminal_there_is_one_bar():
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    with os.fdopen(slave, "w") as terminal:
        bar = progress.Progress(500, 2000, terminal)
        bar.note("Resumed at iteration 500.")
        bar.begin("compiling")
        bar.update(info(1000))
        bar.close()
    text = read_all(master)
    assert "Resumed at iteration 500." in text
    assert "50%" in text
    assert "compiling" in text
    assert "return 21.5" in text
