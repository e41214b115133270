"""Runs that the code before one recipe began: they load, resume and are compared.

The folders in old_runs were written by revision ed206629, without policies and films.
"""

import json
import pathlib
import shutil

import pytest

import tfrl
from tfrl.algorithms import comparing
from tfrl.command import report
from tfrl.train.runs import old_configs

FOLDERS = pathlib.Path(__file__).with_name("old_runs")
QUICK = ("--nofilm", "--noreport", "--noevaluate_untrained")
COMMON = ("--jit_compile=False", "--fc_layer_params=(8,)")
REPLAY = ("--initial_collect_steps=20", "--replay_capacity=100", "--batch_size=8")
# The algorithm, the length and the flags of the run in each folder.
RUNS = {
    "ppo": (
        tfrl.PPO,
        6,
        *("--num_envs=2", "--collect_steps_per_iteration=16", "--minibatch_size=16"),
        *("--num_epochs=2", "--num_eval_episodes=2", "--eval_interval=3"),
        *("--log_interval=2", "--checkpoint_interval=3", *COMMON),
    ),
    "ex_dqn": (
        tfrl.DDQN,
        12,
        *("--num_eval_episodes=2", "--eval_interval=6", "--log_interval=3"),
        *("--checkpoint_interval=6", *REPLAY, *COMMON),
    ),
    "sac": (
        tfrl.SAC,
        8,
        *("--actor_fc_layer_params=(8,)", "--critic_fc_layer_params=(8,)"),
        *("--num_eval_episodes=1", "--eval_interval=4", "--log_interval=2"),
        *("--checkpoint_interval=4", *REPLAY, COMMON[0]),
    ),
}


@pytest.fixture(params=RUNS)
def old(request, tmp_path):
    """The name of an old run, and a copy of its folder."""
    return request.param, shutil.copytree(FOLDERS / request.param, tmp_path / "run")


def test_an_old_run_loads(old):
    name, folder = old
    kind, length, *_ = RUNS[name]
    algorithm = tfrl.load(folder)
    assert type(algorithm) is kind
    assert algorithm.loop.iteration == length
    # The class of `python -m examples.train_dqn` was that of double DQN.
    assert type(algorithm.agent).__name__ == f"{kind.agent_name}"


def test_old_runs_are_reported_and_compared(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(report.report.figures, "draw", lambda *_: None)
    output = tmp_path / "report.html"
    folders = [str(FOLDERS / name) for name in RUNS]
    report.main([*folders, f"--output={output}"])
    assert capsys.readouterr().out.endswith(f"The report is {output}.\n")
    compared = str(comparing.compare(*folders[:2]))
    assert "ppo" in compared
    assert "ddqn" in compared


def test_a_run_with_the_emulator_of_envpool_goes_on_with_ale_py():
    old = {"algorithm": "ppo", "emulator": "envpool", "num_envs": 8}
    assert old_configs.renewed(old) == {**old, "emulator": "ale-py"}


@pytest.mark.slow  # TensorFlow is imported.
def test_an_old_run_resumes_and_goes_on(old, forks):
    name, folder = old
    kind, length, *flags = RUNS[name]
    flags = ("train", kind.name, f"--logdir={folder}", *flags, *QUICK)
    code, _, errors = forks.run("tfrl", *flags, f"--num_iterations={length + 2}")
    assert code == 0, errors
    assert f"Resumed at iteration {length}" in errors
    code, _, errors = forks.run("tfrl", *flags, "--gamma=0.5")
    assert code == 2
    assert "gamma: was " in errors
    finished = json.loads((folder / "finished.json").read_text())
    assert finished["iteration"] == length + 2
