"""WandbLogger, on a module that stands for Weights & Biases."""

import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from tfrl import loggers


class Run:
    def __init__(self, **arguments):
        self.arguments = arguments
        self.logged = []
        self.is_finished = False

    def log(self, values, step=None):
        self.logged.append((values, step))

    def finish(self):
        self.is_finished = True


@pytest.fixture
def runs(monkeypatch):
    """The runs that were started, in order."""
    started = []

    def init(**arguments):
        started.append(Run(**arguments))
        return started[-1]

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    return started


def test_values_are_logged_under_the_label_at_their_step(runs):
    logger = loggers.WandbLogger("train", "steps", project="cartpole", name="seed0")
    logger.write({"steps": np.int64(10), "loss": tf.constant(0.5)})
    logger.close()
    (run,) = runs
    assert run.arguments == {"project": "cartpole", "name": "seed0"}
    assert run.logged == [({"train/steps": 10, "train/loss": 0.5}, 10)]
    assert run.is_finished


def test_a_given_run_counts_its_writes_itself_and_stays_open(runs):
    run = Run()
    logger = loggers.WandbLogger(run=run)
    logger.write({"loss": 0.5})
    logger.close()
    assert run.logged == [({"loss": 0.5}, None)]
    assert not run.is_finished
    assert runs == []


def test_arguments_for_a_second_run_are_refused():
    with pytest.raises(ValueError, match=r"run: got one, and also .*'project'"):
        loggers.WandbLogger(run=Run(), project="cartpole")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[wandb\]'"):
        loggers.WandbLogger()
