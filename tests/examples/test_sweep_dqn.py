"""The example that trains many runs at once, as its users run it."""

import csv
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "examples.sweep_dqn", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        timeout=280,
    )


def test_it_writes_every_run_and_a_picture(tmp_path):
    logdir = tmp_path / "sweep"
    done = run(
        f"--logdir={logdir}",
        "--num_seeds=2",
        "--learning_rates=1e-3,1e-2",
        "--seed=4",
        "--num_iterations=30",
        "--config.eval_interval=20",
        "--config.initial_collect_steps=20",
        "--config.replay_capacity=100",
        "--config.fc_layer_params=(8,)",
        "--config.num_eval_episodes=2",
    )
    assert done.returncode == 0, done.stderr
    with open(logdir / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
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
