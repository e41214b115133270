"""Leaves out the pictures of runs, which take longer to draw than the runs to train."""

import pathlib
import types

import pytest

from tfrl.train.runs import outputs


@pytest.fixture(autouse=True)
def _no_learning_curves(monkeypatch):
    """Except of the runs of modules' fixtures, such as that of all outputs."""

    def touch(metrics_csv, output, title):
        pathlib.Path(output).touch()

    stand_in = types.SimpleNamespace(plot_learning_curve=touch)
    monkeypatch.setattr(outputs, "learning_curve", stand_in)
