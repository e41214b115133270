import contextlib
import io
import os
import re
import termios

import pytest

from tfrl.train.loops import training_loop
from tfrl.train.runs import progress, run_length

LENGTH = run_length.RunLength(2000, None)


def info(iteration, **counters):
    counted = training_loop.IterationInfo(
        iteration, iteration, 2 * iteration, 3, 21.5, 0.1
    )
    return counted._replace(**counters)


def make_progress(first=0, length=LENGTH, seconds_between_lines=0.0):
    stream = io.StringIO()
    return progress.Progress(info(first), length, stream, seconds_between_lines), stream


def test_where_there_is_no_terminal_lines_are_written():
    bar, stream = make_progress()
    bar.evaluated(30.0, 40.0)
    bar.update(info(500), 2.0)
    assert stream.getvalue() == (
        "iteration 500 of 2,000 (500 steps a second, 00:06 left), 1,000 environment "
        "steps: return 21.5, evaluation 30.0 (best 40.0)\n"
    )


def test_the_speed_is_that_of_training_since_the_run_was_resumed():
    """Neither a call without iterations counts, nor what was done before."""
    bar, stream = make_progress(first=1000)
    bar.update(info(1000), 60.0)
    bar.update(info(1200), 1.0)
    bar.update(info(1400), 3.0)
    assert bar.speeds() == {
        "iterations_per_second": 100,
        "environment_steps_per_second": 200,
        "updates_per_second": 100,
    }
    assert (
        stream.getvalue()
        .splitlines()[2]
        .startswith("iteration 1,400 of 2,000 (200 steps a second, 00:06 left), ")
    )


def test_a_length_in_environment_steps_is_what_is_left_of_them():
    bar, stream = make_progress(length=run_length.RunLength(None, 5000))
    bar.update(info(500), 2.0)
    assert stream.getvalue() == (
        "iteration 500 (500 steps a second, 00:08 left), 1,000 of 5,000 environment "
        "steps: return 21.5\n"
    )


@pytest.mark.parametrize(
    ("steps", "loss", "told"),
    [
        (8, 0.1, " (8 steps a second), 8 environment steps: no episode has ended"),
        (0, 0.1, ": loss 0.1"),
        (0, float("nan"), ""),
    ],
)
def test_nothing_is_told_that_was_not_measured(steps, loss, told):
    bar, stream = make_progress()
    untold = info(0, episodes=0, average_return=0.0)
    bar.update(untold._replace(environment_steps=steps, loss=loss), 1.0)
    assert stream.getvalue() == f"iteration 0 of 2,000{told}\n"


def test_further_words_come_last_and_are_asked_for_when_they_are_shown():
    stream, asked = io.StringIO(), iter(["2 actors", "1 actor"])
    bar = progress.Progress(
        info(0), LENGTH, stream, 0.0, lambda: [next(asked), "3 items"]
    )
    bar.evaluated(30.0, None)
    for iteration in (500, 1000):
        bar.update(info(iteration, environment_steps=0), 1.0)
    assert stream.getvalue() == (
        "iteration 500 of 2,000 (500 updates a second, 00:03 left): return 21.5, "
        "evaluation 30.0 (untrained), 2 actors, 3 items\n"
        "iteration 1,000 of 2,000 (500 updates a second, 00:02 left): return 21.5, "
        "evaluation 30.0 (untrained), 1 actor, 3 items\n"
    )


def test_no_return_of_the_untrained_policy_is_the_best():
    bar, stream = make_progress()
    bar.evaluated(30.0, None)
    bar.update(info(500), 1.0)
    assert stream.getvalue().endswith(", evaluation 30.0 (untrained)\n")


def test_lines_keep_their_distance():
    bar, stream = make_progress(seconds_between_lines=1000.0)
    bar.update(info(500), 1.0)
    bar.update(info(1000), 1.0)
    assert stream.getvalue() == ""
    bar.show()
    assert stream.getvalue().startswith("iteration 1,000 of 2,000 (")


def test_a_new_activity_is_told_without_delay_and_once():
    bar, stream = make_progress(seconds_between_lines=1000.0)
    for activity in ("compiling", "training", "compiling", "training"):
        bar.begin(activity)
    assert stream.getvalue() == (
        "iteration 0 of 2,000: compiling\niteration 0 of 2,000: training\n"
    )


def test_the_first_phase_of_collection_has_a_speed_and_training_its_own():
    bar, stream = make_progress()
    bar.update(info(0, environment_steps=0), 100.0)  # It is traced.
    bar.update(info(0, environment_steps=60), 2.0)
    bar.update(info(10, environment_steps=70), 4.0)
    places = [line.partition(", ")[0] for line in stream.getvalue().splitlines()]
    assert places == [
        "iteration 0 of 2,000: return 21.5",
        "iteration 0 of 2,000 (30 steps a second)",
        "iteration 10 of 2,000 (2.5 steps a second",
    ]
    assert bar.speeds()["environment_steps_per_second"] == 2.5


def test_a_progress_that_is_not_shown_writes_announcements_alone():
    stream = io.StringIO()
    bar = progress.Progress(info(0), LENGTH, stream, 0.0, is_shown=False)
    bar.begin("training")
    bar.note("Resumed at iteration 0.")
    bar.update(info(500), 2.0)
    bar.evaluating(1, 2, 3)
    bar.announce("Interrupted at iteration 500.")
    bar.close()
    assert stream.getvalue() == "Interrupted at iteration 500.\n"
    assert bar.speeds()["iterations_per_second"] == 250


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
    termios.tcsetwinsize(slave, (24, 150))
    with os.fdopen(slave, "w") as terminal:
        bar = progress.Progress(info(500), LENGTH, terminal)
        bar.note("Resumed at iteration 500.")
        bar.begin("compiling")
        bar.update(info(1000), 2.0)
        bar.evaluating(1, 2, 3)
        bar.evaluated(30.0, 40.0)
        bar.close()
    text = read_all(master)
    assert "Resumed at iteration 500." in text
    assert "compiling" in text
    assert "evaluating: 1 of 2 episodes" in text
    assert re.search(
        r" 50%\|.*\| 1,000/2,000 \[00:00, 500 steps a second, 00:04 left, 2,000 "
        r"environment steps, return 21.5, evaluation 30.0 \(best 40.0\)\]\s*$",
        text,
    )
