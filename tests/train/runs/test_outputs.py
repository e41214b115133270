"""Runs with and without a directory do the same, and write files or none."""

import os
import signal

import numpy as np
import pytest

from tests.train import countdown_runs
from tfrl import train
from tfrl.savers import whole_checkpoints


class Diary(train.Callback):
    """Writes down every event but checkpoints, which only a directory has."""

    def __init__(self, at=None, action=None):
        self.events, self._at, self._action = [], at, action

    def _add(self, *event):
        self.events.append(event)
        if event[0] == self._at:
            self._action(self)

    def on_log(self, row):
        self._add("log", row["iteration"], row.get("loss"))

    def on_evaluation(self, result):
        self._add("evaluation", result.iteration, result.mean)

    def on_end(self, result):
        self._add("end", result.iteration, result.finished, result.best_return)


def run_both(tmp_path, make=Diary, **settings):
    """What callbacks see of a run in a folder and of one without, and the loops."""
    found = []
    for path in (tmp_path / "run", None):
        diary = make()
        made, loop = countdown_runs.make_run(path, callbacks=[diary], **settings)
        found.append((diary.events, made.run(), countdown_runs.weights(loop)))
    return found


def test_both_train_evaluate_and_log_alike(tmp_path):
    (events, result, there), (others, other, here) = run_both(tmp_path)
    assert events == others
    assert [each[:2] for each in events if each[0] == "evaluation"] == [
        ("evaluation", 0),
        ("evaluation", 10),
        ("evaluation", 20),
    ]
    assert (result.best_return, result.finished) == (other.best_return, True)
    for a, b in zip(there, here, strict=True):
        np.testing.assert_array_equal(a, b)
    assert os.listdir(tmp_path) == ["run"]


def test_a_callback_stops_both(
    tmp_path,
):
    def make():
        return Diary("log", lambda diary: diary.stop("enough"))

    (events, result, _), (others, other, _) = run_both(tmp_path, make)
    assert events == others
    assert result.stopped_by == other.stopped_by
    assert result.stopped_by is not None


def test_a_signal_ends_both_without_an_evaluation(tmp_path):
    def make():
        return Diary("evaluation", lambda _: os.kill(os.getpid(), signal.SIGTERM))

    (events, result, _), (others, other, _) = run_both(tmp_path, make)
    assert events == others
    assert not result.finished
    assert (other.finished, other.stopped_by) == (False, None)


def test_weights_that_are_not_finite_end_both(tmp_path):
    for path in (tmp_path, None):
        made, loop = countdown_runs.make_run(path, own=True)
        for variable in loop.agent.policy.variables():
            variable.assign(np.full(variable.shape, np.nan))
        with pytest.raises(whole_checkpoints.CheckpointError, match="NaN or infinity"):
            made.run()


def test_rows_are_kept_for_the_next_run_without_a_directory():
    rows = []
    made, loop = countdown_runs.make_run(None, rows=rows, own=True, num_iterations=5)
    made.run()
    assert [row["iteration"] for row in rows] == [0, 5]
    more = train.Run(loop, None, num_iterations=10, log_interval=5, rows=rows)
    assert more.run().finished
    assert [row["iteration"] for row in rows] == [0, 5, 10]
