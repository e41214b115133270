"""The command `tfrl`, as its users type it."""

import json
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

import tfrl
from tests.forks import REPOSITORY
from tfrl.algorithms import presets, registry
from tfrl.command import main


def typed(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tfrl", *words])
    monkeypatch.setattr(main.program, "handle_interrupts", lambda: None)
    monkeypatch.setattr(main.threads, "set_up", lambda: None)
    main.main()


def test_it_says_what_there_is(monkeypatch, capsys):
    typed(monkeypatch)
    printed = capsys.readouterr().out
    for command in main.COMMANDS:
        assert f"    tfrl {command}" in printed


def test_it_says_its_versions_and_the_processor(monkeypatch, capsys):
    typed(monkeypatch, "--version")
    lines = dict(x.split(" ", 1) for x in capsys.readouterr().out.splitlines())
    assert lines["tfrl"] == tfrl.__version__
    assert lines["numpy"] == np.__version__
    assert lines["python"] == platform.python_version()
    assert lines["processor"].startswith(platform.machine())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["trian"],
            "command: got 'trian', expected one of train, tune, play, .* mean train",
        ),
        (["train", "qr-dqm"], "algorithm: got 'qr-dqm', .*; did you mean qr_dqn"),
        (["train", "xyz"], "algorithm: got 'xyz', expected one of dqn, .*, bc\n"),
        (["train", "--algo", "ppo"], "--algo: .* no flag; write tfrl train ppo --env="),
        (["--algo=ppo", "--env=X"], "--algo: .* no flag; write tfrl train ppo --env="),
        (
            ["train", "td3_bc", "--preset=td3bc_mujoco"],
            "preset: got 'td3bc_mujoco', expected one of td3_bc_mujoco, td3_bc_offline",
        ),
        (
            ["tune", "ddqn", "--preset=nope"],
            r"one of (?=.*\bddqn\b)(?=.*\bdqn_pixels\b)(?!.*\bppo)",
        ),
        (["list", "settings", "pppo"], "settings: got 'pppo', .*; did you mean ppo"),
        (
            ["list", "games"],
            "list: got 'games', expected one of algorithms, settings, env",
        ),
        (
            ["completion", "cmd"],
            "completion: got 'cmd', expected one of bash, zsh, fish",
        ),
    ],
)
def test_a_wrong_word_is_told(monkeypatch, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        typed(monkeypatch, *words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert re.search(message, error)


@pytest.mark.parametrize(
    "words",
    [
        *(["play"], ["evaluate"], ["record"], ["verify"], ["report"], ["export"]),
        *(["push", "--repo=me/policy"], ["compare"], ["record", "--replay"]),
    ],
)
def test_a_missing_folder_is_told_alike(tmp_path, monkeypatch, capsys, words):
    (tmp_path / "ppo_0").mkdir()
    (tmp_path / "ppo_0" / "config.json").touch()
    folder = str(tmp_path / "ppo_1")
    with pytest.raises(SystemExit):
        typed(monkeypatch, words[0], folder, *words[1:])
    assert capsys.readouterr().err.splitlines()[0] == (
        f"error: folder: got {folder!r}, which does not exist, expected the folder of "
        f"a run, to which an algorithm was trained or saved; did you mean "
        f"{str(tmp_path / 'ppo_0')!r}?"
    )


@pytest.mark.parametrize(
    "words",
    [
        *(["play"], ["evaluate"], ["record"], ["verify"], ["report"], ["export"]),
        *(["push", "--repo=me/policy"], ["record", "--replay"]),
    ],
)
@pytest.mark.parametrize(
    ("program", "what"), [("sweep", "a sweep"), ("tune", "a search")]
)
def test_the_folder_of_many_runs_is_none_of_a_run(
    tmp_path, monkeypatch, capsys, words, program, what
):
    config = json.dumps({"program": program, "algorithm": "dqn", "num_iterations": 1})
    run = tmp_path / "runs" / "seed_0"
    run.mkdir(parents=True)
    (tmp_path / "config.json").write_text(config)
    (run / "config.json").touch()
    with pytest.raises(SystemExit):
        typed(monkeypatch, words[0], str(tmp_path), *words[1:])
    assert capsys.readouterr().err.splitlines()[0] == (
        f"error: folder: got {str(tmp_path)!r}, which is that of {what}, expected the "
        "folder of a run, to which an algorithm was trained or saved; did you mean "
        f"{str(run)!r}?"
    )


@pytest.mark.parametrize("command", main._OF_ALGORITHMS)
def test_help_without_an_algorithm_has_a_line_for_each(monkeypatch, capsys, command):
    typed(monkeypatch, command, "--help")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 88
    of_algorithms = [x.split()[0] for x in lines if re.match(r"  \w+  ", x)]
    assert sorted(of_algorithms) == sorted(registry.CLASSES)
    assert all(len(x) <= 80 for x in lines if re.match(r"  \w+  ", x))
    text = " ".join(lines)
    wanted = {"tune": ["--trials", "--seeds", "pruned"], "sweep": ["--seeds=0..9"]}
    assert all(word in text for word in wanted.get(command, ["--env="]))


def test_algorithms_are_listed_with_their_classes_and_actions(monkeypatch, capsys):
    typed(monkeypatch, "list")
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, *_ in rows] == list(registry.CLASSES)
    for name, class_name, acts_on in rows:
        kind = getattr(tfrl, class_name.removeprefix("tfrl."))
        assert kind is registry.find(name)
        assert (acts_on == "any actions") == (kind.actions == "any")


def test_settings_and_environments_are_listed(monkeypatch, capsys):
    typed(monkeypatch, "list", "settings", "ppo")
    rows, _, notes = capsys.readouterr().out.partition("\n\n")
    lines = rows.splitlines()
    expected = [each for each in presets.every() if each.algorithm == "ppo"]
    assert len(lines) == len(expected)
    told = [f"{each.name}: {each.note}" for each in expected if each.note]
    assert notes.splitlines() == told
    assert any("Hopper" in line or "HalfCheetah-v5" in line for line in lines)
    typed(monkeypatch, "list", "environments", "cartpole")
    assert "CartPole-v1" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_algorithms(monkeypatch, capsys, shell):
    typed(monkeypatch, "completion", shell)
    printed = capsys.readouterr().out
    for word in (*main.COMMANDS, *registry.CLASSES, "--env"):
        assert word in printed


def test_bash_completes(monkeypatch, capsys):
    typed(monkeypatch, "completion", "bash")
    script = capsys.readouterr().out + (
        "COMP_WORDS=(tfrl train qr); COMP_CWORD=2; _tfrl; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(tfrl sweep qr); COMP_CWORD=2; _tfrl; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(tfrl re); COMP_CWORD=1; _tfrl; echo ${COMPREPLY[@]}\n"
    )
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "qr_dqn\nqr_dqn\nreport record replay-server\n"


SMALL = (
    "--env=CartPole-v1",
    "--seed=3",
    "--num_environment_steps=60",
    "--jit_compile=False",
    "--num_eval_episodes=2",
    "--num_envs=2",
    "--collect_steps_per_iteration=8",
    "--minibatch_size=8",
    "--num_epochs=2",
    "--fc_layer_params=(4,)",
    "--eval_interval=2",
)


def run_python(*words):
    result = subprocess.run(
        [sys.executable, *words], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_a_run_of_the_command_is_measured(tmp_path):
    """Four processes import TensorFlow."""

    def run(*words):
        return run_python("-m", *words)

    command = tmp_path / "command"
    run("tfrl", "train", "ppo", *SMALL, "--nofilm", f"--logdir={command}")
    words = ("tfrl", "evaluate", f"{command}", "--num_episodes=3")
    measured = json.loads(run(*words, "--json"))
    assert (measured["environment"], len(measured["returns"])) == ("CartPole-v1", 3)
    assert f"mean return {measured['mean']:.1f}, " in run(*words)
    assert "3 episodes of CartPole-v1: mean return " in run(*words, "--sampled")
