"""Returns that the examples reach over seeds; they take minutes: run with `-m slow`."""

import csv
import pathlib
import re
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(command, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tfrl", *command.split(), *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def mean_return_of_policy(logdir, policy, num_episodes, seed):
    output = run(
        "play",
        str(logdir),
        f"--policy={policy}",
        f"--num_episodes={num_episodes}",
        f"--seed={seed}",
        "--video=",
    )
    return float(re.search(r"mean return ([\d.]+)", output)[1])


@pytest.mark.parametrize("replay", ["uniform", "prioritized"])
def test_dqn_solves_cart_pole_within_50_000_steps(replay, tmp_path):
    best, final = [], []
    for seed in range(5):
        logdir = tmp_path / str(seed)
        run(
            "train ddqn",
            f"--replay={replay}",
            f"--seed={seed}",
            f"--logdir={logdir}",
        )
        with open(logdir / "metrics.csv", newline="") as file:
            last = list(csv.DictReader(file))[-1]
        assert int(last["environment_steps"]) <= 50_000
        for name, scores in (("policy", best), ("final_policy", final)):
            scores.append(mean_return_of_policy(logdir, logdir / name, 20, 777))
    print(f"best policies {best}, final policies {final}")
    assert min(best) >= 475
    assert sum(score >= 475 for score in final) >= 4


def test_reinforce_solves_cart_pole_v0_within_250_iterations(tmp_path):
    scores = []
    for seed in range(5):
        logdir = tmp_path / str(seed)
        run("train reinforce", f"--seed={seed}", f"--logdir={logdir}")
        scores.append(mean_return_of_policy(logdir, logdir / "final_policy", 50, 777))
    print(f"final policies {scores}")
    assert sum(score >= 195 for score in scores) >= 4


def test_dqn_with_hindsight_flips_ten_bits_within_1_500_steps(tmp_path):
    fractions = []
    for seed in range(3):
        logdir = tmp_path / str(seed)
        env = "--env=BitFlippingToOnes10-v0"
        run("train ddqn", env, f"--seed={seed}", f"--logdir={logdir}")
        with open(logdir / "metrics.csv", newline="") as file:
            last = list(csv.DictReader(file))[-1]
        assert int(last["environment_steps"]) <= 1_500
        policy = f"--policy={logdir / 'final_policy'}"
        output = run("play", f"{logdir}", policy, "--num_episodes=200")
        assert (logdir / "play.mp4").exists()
        returns = [float(x) for x in re.findall(r": return ([-\d.]+)", output)]
        fractions.append(sum(x > -10 for x in returns) / len(returns))
    print(f"episodes without a failure {fractions}")
    assert min(fractions) > 0.9
