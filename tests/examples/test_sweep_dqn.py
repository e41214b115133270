"""The example that trains many runs at once, as its users run it."""

import csv
import json
import re
import signal

import numpy as np
import pytest
import tensorflow as tf

from examples import sweep_processes
from tfrl.environments import native

SMALL = (
    "--num_seeds=2",
    "--seed=4",
    "--config.initial_collect_steps=20",
    "--config.replay_capacity=100",
    "--config.fc_layer_params=(8,)",
    "--config.num_eval_episodes=2",
)


def rows_of(logdir):
    with open(logdir / "curves.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_it_writes_every_run_with_its_policy_and_a_picture(run, tmp_path):
    logdir = tmp_path / "sweep"
    code, output, errors = run(
        "sweep_dqn",
        *SMALL,
        f"--logdir={logdir}",
        "--learning_rates=1e-3,1e-2",
        "--num_iterations=30",
        "--config.eval_interval=20",
    )
    assert code == 0, errors
    rows = rows_of(logdir)
    assert [(row["learning_rate"], row["seed"], row["iteration"]) for row in rows] == [
        (rate, seed, iteration)
        for rate in ("0.001", "0.01")
        for seed in "45"
        for iteration in ("20", "30")
    ]
    assert all(float(row["return"]) >= 8 for row in rows)
    picture = (logdir / "learning_curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert re.search(r"iteration 30 of 30, \d+ s: median return [\d.]+", errors)
    assert "learning rate 0.01: median return" in output
    assert re.search(r"[\d,]+ environment steps a second, all together", errors)

    actions = set()
    for rate in ("0.001", "0.01"):
        for seed in (4, 5):
            folder = logdir / "runs" / f"learning_rate_{rate}_seed_{seed}"
            config = json.loads((folder / "config.json").read_text())
            assert (config["env"], config["seed"]) == ("CartPole-v1", seed)
            assert config["learning_rate"] == float(rate)
            actions.add(tuple(actions_of(folder / "policy")))
    # Each has weights of its own.
    assert len(actions) > 1


def actions_of(path):
    """The actions of a saved policy in some states."""
    policy = tf.saved_model.load(str(path))
    step = native.load("CartPole-v1", 64, seed=0).reset()
    states = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    return policy.action(step._replace(observation=states)).action.numpy().tolist()


@pytest.mark.slow  # Each of its processes imports TensorFlow.
def test_a_killed_sweep_in_processes_goes_on(forks, tmp_path):
    arguments = (
        "sweep_dqn",
        *SMALL,
        f"--logdir={tmp_path / 'sweep'}",
        # The name with its module is not one of the native environments'.
        "--env=gymnasium.envs:CartPole-v0",
        "--processes=1",
        "--num_iterations=320",
        "--config.eval_interval=40",
    )
    first, second = (
        tmp_path / "sweep" / "runs" / f"learning_rate_0.001_seed_{seed}"
        for seed in (4, 5)
    )
    killed = forks.start(*arguments)
    killed.wait_for(lambda: list((first / "checkpoints").glob("*.index")))
    killed.end(signal.SIGKILL)
    assert not second.exists()  # One at a time.

    code, _, errors = forks.run(*arguments)
    assert code == 0, errors
    assert "Resumed at iteration" in (first / "output.txt").read_text()
    rows = rows_of(tmp_path / "sweep")
    assert [(row["seed"], row["iteration"]) for row in rows] == [
        (seed, str(iteration)) for seed in "45" for iteration in range(40, 321, 40)
    ]
    assert (tmp_path / "sweep" / "learning_curves.png").exists()
    for folder in (first, second):
        assert (folder / "policy" / "saved_model.pb").exists()
        config = json.loads((folder / "config.json").read_text())
        assert config["learning_rate"] == 0.001


@pytest.mark.slow
def test_wrong_settings_are_refused_before_anything_is_made(forks, tmp_path):
    logdir = tmp_path / "sweep"
    code, _, errors = forks.run(
        "sweep_dqn", *SMALL, f"--logdir={logdir}", "--env=Pendulum-v1"
    )
    assert code == 2
    assert "error: " in errors
    assert not logdir.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "different numbers, with commas, got 'a'; set --learning_rates="),
        ([], "different numbers, with commas, got ''; set --learning_rates="),
        (["1", "2", "1.0"], "different numbers, with commas, got '1,2,1.0'; set"),
        (["1e-3", "-1"], "a finite number of at least 0, got -1.0; set --learn"),
        (["nan"], "a finite number of at least 0, got nan; set --learning_rates"),
    ],
)
def test_wrong_learning_rates_are_refused(words, message):
    with pytest.raises(ValueError, match=f"^learning_rates: expected {message}"):
        sweep_processes.learning_rates(words)
