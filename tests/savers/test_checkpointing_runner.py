import os
import signal
import threading
import time

import pytest
import tensorflow as tf

from tfrl import savers


class Learner(savers.TFSaveable):
    """Adds 1 to a variable at each step, and may send its process a signal."""

    def __init__(self, signal_at=None):
        self.variable = tf.Variable(0)
        self.signal_at = signal_at
        self.name = "learner"

    @property
    def state(self):
        return {"variable": self.variable}

    def step(self):
        self.variable.assign_add(1)
        if int(self.variable) == self.signal_at:
            os.kill(os.getpid(), signal.SIGTERM)


def run(directory, learner, num_steps=None, **arguments):
    runner = savers.CheckpointingRunner(
        learner, directory=directory, add_uid=False, **arguments
    )
    runner.run(num_steps)
    return runner


def test_a_signal_ends_the_run_after_a_checkpoint(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    run(tmp_path, Learner(signal_at=3))
    assert signal.getsignal(signal.SIGTERM) is before
    learner = Learner()
    runner = run(tmp_path, learner, num_steps=4)
    assert int(learner.variable) == 7
    assert runner.get_directory() == str(tmp_path / "checkpoints" / "default")


def test_it_saves_while_it_runs(tmp_path):
    class Failing(Learner):
        def step(self):
            super().step()
            if int(self.variable) == 3:
                raise RuntimeError("out of data")

    with pytest.raises(RuntimeError, match="out of data"):
        run(tmp_path, Failing(), time_delta_minutes=0)
    learner = Learner()
    savers.CheckpointingRunner(learner, directory=tmp_path, add_uid=False)
    assert int(learner.variable) == 2


def test_an_object_without_steps_is_saved_alone(tmp_path, monkeypatch):
    slept, sleep, this_thread = [], time.sleep, threading.get_ident()
    monkeypatch.setattr(
        "time.sleep",
        lambda seconds: (
            slept.append if threading.get_ident() == this_thread else sleep
        )(seconds),
    )
    variable = tf.Variable(5)
    run(tmp_path, variable, num_steps=2, subdirectory="variable")
    assert slept == [1, 1]
    variable.assign(0)
    run(tmp_path, variable, num_steps=0, subdirectory="variable")
    assert int(variable) == 5


def test_other_attributes_are_those_of_the_object(tmp_path):
    runner = savers.CheckpointingRunner(Learner(), directory=tmp_path)
    assert runner.name == "learner"
    with pytest.raises(AttributeError):
        runner.nothing_of_this_name  # noqa: B018
