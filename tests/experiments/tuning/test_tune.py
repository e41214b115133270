"""`tfrl.tune`: in one program, in processes and in turn, to a row of settings."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time

import gymnasium
import optuna
import pytest

import tfrl
from tfrl.command import config_files
from tfrl.environments import native
from tfrl.experiments.tuning import tune
from tfrl.train.runs import run_files

optuna.logging.set_verbosity(optuna.logging.WARNING)
SMALL = {
    "num_iterations": 10,
    "initial_collect_steps": 40,
    "collect_steps_per_iteration": 2,
    "train_steps_per_iteration": 1,
    "replay_capacity": 100,
    "batch_size": 8,
    "fc_layer_params": (4,),
    "num_eval_episodes": 2,
    "n_step_update": 1,
}
DYNAMICS = dataclasses.replace(
    native.load("CartPole-v1").dynamics, max_episode_steps=20
)


def drawn(result):
    return [(t.params, t.value) for t in result.study.trials]


@pytest.mark.slow
def test_settings_are_tuned_in_one_program_in_an_environment_of_ones_own(
    tmp_path, capsys
):
    folder = tmp_path / "tuned"
    search = {"gamma": None, "learning_rate": "1e-4..1e-2:log"}
    arguments = {
        "num_evaluations": 3,
        "search": search,
        "logdir": folder,
        "slots": 2,
        "best": 2,
    }
    own = {"environment_name": "Mine-v0", **SMALL}
    dqn = tfrl.DQN(DYNAMICS, **own)
    result = tfrl.tune(dqn, trials=3, seeds=2, **arguments)
    said = capsys.readouterr().err
    assert "3 trials of 12 iterations: 2 at a time in one program" in said
    assert said.count("\nTrial ") == 3
    trials = result.study.trials
    assert [t.state.name for t in trials] == ["COMPLETE"] * 3
    assert all(list(t.intermediate_values) == [1, 2, 3] for t in trials)
    assert all(t.params.keys() == search.keys() for t in trials)
    # The best are the two with the largest values, with seeds that are not the trials'.
    values = sorted((t.value for t in trials), reverse=True)
    assert [trials[number].value for number in result.returns] == values[:2]
    assert all(list(own) == [1, 2] for own in result.returns.values())
    means = {n: sum(own.values()) / 2 for n, own in result.returns.items()}
    best = max(means, key=means.get)
    assert result.values == trials[best].params
    assert result.settings["gamma"] == trials[best].params["gamma"]
    assert result.settings["num_iterations"] == 12
    # The row is one that --config takes.
    row = json.loads((folder / "best.json").read_text())
    assert row == json.loads(json.dumps(result.row))
    assert row["source"].startswith(f"trial {best} of 3 by tfrl tune, mean return ")
    recipe = config_files.read(str(folder / "best.json"), tfrl.DQN, trusts=True)
    assert (recipe.algorithm, recipe.environment) == (tfrl.DQN, "Mine-v0")
    # JSON has lists for tuples.
    whole, found = (
        json.loads(json.dumps(values))
        for values in (dict(recipe.settings), dict(result.settings))
    )
    assert {**whole, **found} == whole
    text = (folder / "report.md").read_text()
    assert "# dqn on Mine-v0" in text
    assert "| learning_rate | 0.0001..0.01:log | " in text
    # Another call adds no trial, and other settings are refused.
    again = tfrl.tune(dqn, trials=3, seeds=2, **arguments)
    assert drawn(again) == drawn(result)
    assert again.row == result.row
    other = tfrl.DQN(DYNAMICS, **{**own, "batch_size": 4})
    with pytest.raises(tfrl.train.RunDirectoryError, match="batch_size"):
        tfrl.tune(other, trials=3, seeds=2, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"trials": 0}, "trials: expected an integer in .1, .*, got 0; raise it"),
        ({"best": -1}, "best: expected an integer in .0, .*, got -1"),
        ({"num_environment_steps": 0}, "num_environment_steps: expected an integer"),
        ({"search": "gama"}, "search: got 'gama'"),
        ({"algorithm": "iql"}, "algorithm: got 'iql', which learns from recorded data"),
        (
            {"algorithm": "reinforce", "num_environment_steps": 100},
            "num_environment_steps: got 100, but an iteration of REINFORCE has no",
        ),
    ],
)
def test_wrong_arguments_are_errors(arguments, error):
    with pytest.raises(ValueError, match=error):
        tune.tune(**{"algorithm": "dqn", **arguments})


def test_an_environment_without_a_name_cannot_be_in_processes():
    with pytest.raises(TypeError, match="got a function for trials in processes, whic"):
        tfrl.tune(tfrl.DQN(lambda: gymnasium.make("CartPole-v1")))
    dqn = tfrl.DQN("CartPole-v1", network=lambda *_: None)
    with pytest.raises(ValueError, match=r"^algorithm: got one with parts of a "):
        tfrl.tune(dqn)


COMMAND = [
    *[sys.executable, "-m", "tfrl", "tune", "dqn", "--env=CartPole-v1", "--trials=4"],
    *["--num_evaluations=2", "--num_environment_steps=400", "--best=1", "--seeds=1"],
    *["--initial_collect_steps=100", "--num_eval_episodes=2"],
    *["--fc_layer_params=(8,)", "--replay_capacity=500"],
]


def run(*words):
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True)


def trials_of(folder):
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
    return optuna.load_study(
        study_name=folder.name, storage=optuna.storages.JournalStorage(backend)
    ).trials


def wait_for(is_done):
    until = time.monotonic() + 600
    while not is_done():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("words", "how", "number"),
    [
        (
            ["--search.gamma=0.9,0.95,0.99", "--slots=2"],
            "2 at a time in one program",
            signal.SIGKILL,
        ),
        *(
            (
                ["--search.batch_size=16,32,64", "--processes=2"],
                "2 at a time in processes, since batch_size would change the program",
                number,
            )
            for number in (signal.SIGKILL, signal.SIGTERM)
        ),
    ],
)
def test_a_killed_command_goes_on_with_the_same_trials(tmp_path, words, how, number):
    whole = run(*words, f"--logdir={tmp_path / 'whole'}")
    assert whole.returncode == 0, whole.stderr
    assert how in whole.stderr
    folder = tmp_path / "killed"
    words = [*words, f"--logdir={folder}"]
    log = folder / "study.log"
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE) as process:
        wait_for(lambda: log.exists() and '"intermediate_value"' in log.read_text())
        os.kill(process.pid, number)
    before = trials_of(folder)
    states = {trial.state.name for trial in before}
    assert "RUNNING" in states <= {"RUNNING", "COMPLETE"}
    again = run(*words)
    assert again.returncode == 0, again.stderr
    after = trials_of(folder)
    assert [t.state.name for t in after] == ["COMPLETE"] * 4
    # The last one may have been killed before it had its settings.
    if before[-1].state.name == "RUNNING" and not before[-1].params:
        before.pop()
    assert [t.params for t in after][: len(before)] == [t.params for t in before]
    if "program" in how.partition(",")[0]:
        expected = [(t.params, t.value) for t in trials_of(tmp_path / "whole")]
        assert [(t.params, t.value) for t in after] == expected
    # The same command trains with the best settings.
    found = re.search(r"tfrl (train dqn --config=\S+best.json) trains", again.stdout)
    trained = subprocess.run(
        [
            *[sys.executable, "-m", "tfrl", *found[1].split(), "--quiet", "--nofilm"],
            f"--logdir={tmp_path / 'trained'}",
        ]
    )
    assert trained.returncode == 0
    config = run_files.read_config(tmp_path / "trained" / "config.json")
    row = json.loads((folder / "best.json").read_text())
    assert all(config[name] == value for name, value in row["settings"].items())


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--search.gamma=2..3"], "gamma: expected a number in [0, 1], got 2"),
        slow(["--search.gama=0..1"], "did you mean --search.gamma"),
        slow(["--sampler=TPE"], "sampler: got 'TPE', expected one of Base"),
        slow(["--trials=0"], "--trials: expected"),
    ],
)
def test_a_wrong_word_is_told_before_tensorflow_is_imported(tmp_path, words, error):
    result = run(*words, f"--logdir={tmp_path / 'no'}")
    assert result.returncode == 2
    assert error in result.stderr
    assert not (tmp_path / "no").exists()
