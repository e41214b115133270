"""The example that trains many runs at once, as its users run it."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf

from tfrl.environments import native

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SMALL = (
    "--num_seeds=2",
    "--seed=4",
    "--config.initial_collect_steps=20",
    "--config.replay_capacity=100",
    "--config.fc_layer_params=(8,)",
    "--config.num_eval_episodes=2",
)


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "examples.sweep_dqn", *SMALL, *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )


def run(*arguments):
    process = start(*arguments)
    stdout, stderr = process.communicate(timeout=280)
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


def rows_of(logdir):
    with open(logdir / "curves.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_it_writes_every_run_with_its_policy_and_a_picture(tmp_path):
    logdir = tmp_path / "sweep"
    done = run(
        f"--logdir={logdir}",
        "--learning_rates=1e-3,1e-2",
        "--num_iterations=30",
        "--config.eval_interval=20",
    )
    assert done.returncode == 0, done.stderr
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
    assert re.search(r"iteration 30 of 30, \d+ s: median return [\d.]+", done.stdout)
    assert "learning rate 0.01: median return" in done.stdout
    assert re.search(r"[\d,]+ environment steps a second, all together", done.stdout)

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


def test_a_killed_sweep_in_processes_goes_on(tmp_path):
    arguments = (
        f"--logdir={tmp_path / 'sweep'}",
        # The name with its module is not one of the native environments'.
        "--env=gymnasium.envs:CartPole-v0",
        "--processes=1",
        "--num_iterations=800",
        "--config.eval_interval=40",
    )
    first, second = (
        tmp_path / "sweep" / "runs" / f"learning_rate_0.001_seed_{seed}"
        for seed in (4, 5)
    )
    killed = start(*arguments)
    while not list((first / "checkpoints").glob("*.index")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert not second.exists()  # One at a time.

    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert "Resumed at iteration" in (first / "output.txt").read_text()
    rows = rows_of(tmp_path / "sweep")
    assert [(row["seed"], row["iteration"]) for row in rows] == [
        (seed, str(iteration)) for seed in "45" for iteration in range(40, 801, 40)
    ]
    assert (tmp_path / "sweep" / "learning_curves.png").exists()
    for folder in (first, second):
        assert (folder / "policy" / "saved_model.pb").exists()
        config = json.loads((folder / "config.json").read_text())
        assert config["learning_rate"] == 0.001


def test_wrong_settings_are_refused_before_anything_is_made(tmp_path):
    logdir = tmp_path / "sweep"
    done = run(f"--logdir={logdir}", "--env=Pendulum-v1")
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert not logdir.exists()
