"""MLflowLogger, on a module that stands for MLflow."""

import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from tfrl import loggers


class Client:
    """What `mlflow.MlflowClient` does with experiments, runs and metrics."""

    experiments = ("Default",)

    def __init__(self, tracking_uri=None):
        self.tracking_uri = tracking_uri
        self.created, self.runs, self.params = [], [], {}
        self.metrics, self.terminated = [], []

    def get_experiment_by_name(self, name):
        found = name in self.experiments
        return types.SimpleNamespace(experiment_id=f"id of {name}") if found else None

    def create_experiment(self, name):
        self.created.append(name)
        return f"id of {name}"

    def create_run(self, experiment_id, run_name=None):
        self.runs.append((experiment_id, run_name))
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="new run"))

    def log_param(self, run_id, key, value):
        self.params[run_id, key] = value

    def log_batch(self, run_id, metrics):
        self.metrics.append((run_id, metrics))

    def set_terminated(self, run_id):
        self.terminated.append(run_id)


@pytest.fixture
def clients(monkeypatch):
    """The clients that were made, in order."""
    made = []

    def make(tracking_uri=None):
        made.append(Client(tracking_uri))
        return made[-1]

    entities = types.SimpleNamespace(
        Metric=lambda key, value, timestamp, step: (key, value, step)
    )
    module = types.SimpleNamespace(MlflowClient=make, entities=entities)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return made


def test_numbers_are_logged_under_the_label_at_their_step(clients):
    logger = loggers.MLflowLogger(
        "train",
        "steps",
        tracking_uri="file:runs",
        experiment="cartpole",
        name="seed0",
        params={"gamma": 0.9},
    )
    (client,) = clients
    assert (client.tracking_uri, client.created) == ("file:runs", ["cartpole"])
    assert client.runs == [("id of cartpole", "seed0")]
    assert client.params == {("new run", "gamma"): 0.9}
    logger.write(
        {
            "steps": np.int64(10),
            "loss": tf.constant(0.5),
            "missing": None,
            "text": "far",
            "unknown": float("nan"),
            "image": np.zeros([2, 2]),
        }
    )
    logger.close()
    expected = [("train/steps", 10.0, 10), ("train/loss", 0.5, 10)]
    assert client.metrics == [("new run", expected)]
    assert client.terminated == ["new run"]


def test_a_given_run_counts_its_writes_itself_and_keeps_its_status(clients):
    logger = loggers.MLflowLogger(run_id="earlier")
    logger.write({"loss": 0.5})
    logger.write({"loss": 0.25})
    logger.close()
    (client,) = clients
    assert client.metrics == [
        ("earlier", [("loss", 0.5, 0)]),
        ("earlier", [("loss", 0.25, 1)]),
    ]
    assert (client.runs, client.terminated, logger.run_id) == ([], [], "earlier")


def test_a_known_experiment_is_not_made_again(clients):
    loggers.MLflowLogger()
    assert clients[0].created == []
    assert clients[0].runs == [("id of Default", None)]


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[mlflow\]'"):
        loggers.MLflowLogger()
