"""`--track`, with modules that stand for Weights & Biases and MLflow."""

import json
import os
import subprocess
import sys

import pytest

from tests.forks import ENVIRONMENT, REPOSITORY

# Each call of the module becomes a line of a file.
WANDB = """
import json, os

def say(*words):
    with open(os.environ["SAID"], "a") as file:
        file.write(json.dumps(words) + "\\n")

class Run:
    def log(self, values, step):
        say("log", step, sorted(values))

    def finish(self):
        say("finish")

def init(config, **arguments):
    say("init", config["num_iterations"], arguments)
    return Run()
"""
MLFLOW = """
import json, os, types

def say(*words):
    with open(os.environ["SAID"], "a") as file:
        file.write(json.dumps(words) + "\\n")

entities = types.SimpleNamespace(Metric=lambda key, value, time, step: (key, step))

class MlflowClient:
    def __init__(self, tracking_uri):
        pass

    def get_experiment_by_name(self, name):
        say("experiment", name)
        return types.SimpleNamespace(experiment_id="3")

    def create_run(self, experiment_id, run_name):
        say("run", experiment_id, run_name)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="seven"))

    def log_param(self, run_id, key, value):
        if key == "num_iterations":
            say("param", run_id, value)

    def log_batch(self, run_id, metrics):
        say("log", run_id, max(step for _, step in metrics))

    def set_terminated(self, run_id):
        say("finish", run_id)
"""
SMALL = (
    "--env=CartPole-v1",
    "--jit_compile=False",
    "--collect_steps_per_iteration=8",
    "--num_envs=2",
    "--minibatch_size=8",
    "--num_epochs=1",
    "--num_eval_episodes=1",
    "--log_interval=1",
    "--nofilm",
    "--noevaluate_untrained",
    "--quiet",
)


def train(tmp_path, *arguments):
    said = tmp_path / "said"
    said.write_text("")
    environment = {
        **ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)]),
        "SAID": str(said),
    }
    process = subprocess.run(
        [sys.executable, "-m", "tfrl", "train", "ppo", *SMALL, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env=environment,
    )
    return process, [json.loads(line) for line in said.read_text().splitlines()]


@pytest.mark.slow
def test_a_run_goes_on_in_the_run_of_weights_and_biases(tmp_path):
    (tmp_path / "wandb.py").write_text(WANDB)
    arguments = (f"--logdir={tmp_path / 'run'}", "--track=wandb")
    process, first = train(tmp_path, *arguments, "--num_iterations=2")
    assert process.returncode == 0, process.stderr
    run_id = json.loads((tmp_path / "run" / "tracking.json").read_text())["wandb"]
    expected = {"project": "tfrl", "name": "run", "id": run_id, "resume": "allow"}
    assert first[0] == ["init", 2, expected]
    assert [words[:2] for words in first[1:-1]] == [["log", i] for i in range(3)]
    assert {"iteration", "loss", "evaluation_return"} <= set(first[3][2])
    assert first[-1] == ["finish"]
    process, second = train(tmp_path, *arguments, "--num_iterations=3")
    assert process.returncode == 0, process.stderr
    assert second[0] == ["init", 3, expected]
    assert [words[:2] for words in second[1:]] == [["log", 3], ["finish"]]
    _, third = train(tmp_path, *arguments, "--num_iterations=1", "--overwrite")
    assert third[0][2]["id"] != run_id


@pytest.mark.slow
def test_a_run_is_one_of_mlflows(tmp_path):
    (tmp_path / "mlflow.py").write_text(MLFLOW)
    arguments = (f"--logdir={tmp_path / 'run'}", "--track=mlflow")
    process, first = train(tmp_path, *arguments, "--num_iterations=1")
    assert process.returncode == 0, process.stderr
    assert first == [
        ["experiment", "tfrl"],
        ["run", "3", "run"],
        ["param", "seven", 1],
        ["log", "seven", 0],
        ["log", "seven", 1],
        ["finish", "seven"],
    ]
    process, second = train(tmp_path, *arguments, "--num_iterations=2")
    assert process.returncode == 0, process.stderr
    assert second == [["log", "seven", 2]]


@pytest.mark.parametrize(
    ("track", "message"),
    [
        ("wandb", "track: got 'wandb', whose package is not installed; install it "),
        ("comet", "--track: expected one of wandb, mlflow, got 'comet'"),
    ],
)
def test_what_cannot_be_tracked_to_is_refused(tmp_path, track, message):
    process, _ = train(tmp_path, f"--track={track}", f"--logdir={tmp_path / 'run'}")
    assert process.returncode == 2
    assert message in process.stderr
    assert not (tmp_path / "run").exists()
