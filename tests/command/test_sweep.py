"""The command that trains many runs, and compares them."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import tfrl
from tests.forks import REPOSITORY
from tfrl.algorithms import comparing, registry
from tfrl.command import parsing, sweep, train
from tfrl.experiments import children
from tfrl.system import directory_lock


def test_settings_may_have_several_values():
    kind = registry.find("ddqn")
    given = train.define_flags(kind)
    parsing.allow_several(given, kind.run_fields())
    given(
        [
            "tfrl",
            "--env=A,B",
            "--gamma",
            "0.9,0.99",
            "-fc_layer_params=(8,),(8, 8)",
            "--batch_size=64",
            "--conv_layer_params=((32, 8, 4), (64, 4, 2))",
        ]
    )
    assert parsing.several(given) == {
        "gamma": {"0.9": 0.9, "0.99": 0.99},
        "fc_layer_params": {"(8,)": (8,), "(8, 8)": (8, 8)},
    }
    assert parsing.typed(given) == {
        "env": "A,B",
        "gamma": 0.9,
        "fc_layer_params": (8,),
        "batch_size": 64,
        "conv_layer_params": ((32, 8, 4), (64, 4, 2)),
    }


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs the command with its parts, which train nothing; returns what they got."""
    got = {"programs": [], "children": []}

    def start(environment, seeds="0..1", *words):
        flags = ("--nofilm", "--quiet", "--processes=4", f"--logdir={tmp_path}")
        flags = (f"--env={environment}", f"--seeds={seeds}", *flags, *words)
        sweep.main(registry.find("ddqn"), [*flags])
        return got

    class Compared:
        def write(self, folder, overwrite):
            got["written"] = folder

        def __str__(self):
            return "compared"

    def train_all(runs, most, on_end):
        got["children"] += runs
        got["most"] = most
        for number in range(len(runs)):
            on_end(number, 0)
        return [0] * len(runs)

    def train_in_one_program(members, checkpoints):
        got["programs"].append((members, checkpoints))

    monkeypatch.setattr(children, "train_all", train_all)
    monkeypatch.setattr(sweep.sweeps, "train_in_one_program", train_in_one_program)
    monkeypatch.setattr(comparing, "compare", lambda *folders: Compared())
    monkeypatch.setattr(sweep.quiet, "quieten_tensorflow", lambda: None)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    monkeypatch.setattr(sweep.threads, "_chosen_here", {"TF_NUM_INTRAOP_THREADS"})
    return start


def test_runs_on_an_environment_in_tensorflow_are_programs(command, tmp_path, capsys):
    swept = ("--batch_size=32,64", "--gamma=0.9,1")
    got = command("CartPole-v1", "3", *swept, "--num_environment_steps=9000")
    (first, checkpoints), (second, _) = got["programs"]
    assert checkpoints == tmp_path / "programs"
    assert os.environ["TF_NUM_INTRAOP_THREADS"] == "0"
    names = [path.name for path, _ in first + second]
    values = [(batch, gamma) for batch in (32, 64) for gamma in ("0.9", "1")]
    assert names == [f"batch_size_{x}_gamma_{gamma}_seed_3" for x, gamma in values]
    keys = ("batch_size", "gamma", "seed")
    found = [tuple(x.settings[key] for key in keys) for _, x in first + second]
    assert found == [(x, float(gamma), 3) for x, gamma in values]
    assert isinstance(second[0].recipe.settings["gamma"], float)
    assert 2_000 <= second[0].recipe.settings["num_iterations"] <= 9_000 / 4
    printed = capsys.readouterr().out
    assert printed.startswith(
        "4 runs in 2 programs, one after another, since CartPole-v1 is written in "
        "TensorFlow; runs of a program differ in seeds and in numbers that it can read"
    )
    assert printed.endswith(f"compared\nOutputs: {tmp_path}\n")
    assert got["written"] == tmp_path


def test_runs_of_another_environment_are_processes(command, tmp_path, capsys):
    got = command("gymnasium.envs:CartPole-v1", "7", "--loss=squared,huber")
    squared, huber = got["children"]
    assert huber.folder == tmp_path / "runs" / "loss_huber_seed_7"
    own = huber.recipe
    found = [own.algorithm.name, own.environment, own.settings["loss"]]
    assert found == ["ddqn", "gymnasium.envs:CartPole-v1", "huber"]
    settings = squared.recipe.settings
    assert (settings["loss"], settings["seed"]) == ("squared", 7)
    assert (huber.options["films"], huber.options["overwrite"]) == (False, False)
    assert got["most"] == 2
    printed = capsys.readouterr().out
    assert printed.startswith(
        "2 runs in processes, 2 at a time, since gymnasium.envs:CartPole-v1 is not "
        "written in TensorFlow. Each prints to output.txt in its folder.\n"
        "loss_squared_seed_7: ended\n"
    )


def test_values_are_read_as_the_flags_of_the_settings_are(command):
    swept = ("--dueling=false,true", "--fc_layer_params=8,(4, 4)", "--loss=huber")
    last = ("--final_learning_rate=None,0",)
    got = command("gymnasium.envs:CartPole-v1", "7", *swept, *last)
    keys = ("dueling", "fc_layer_params", "final_learning_rate")
    recipes = [child.recipe for child in got["children"]]
    assert [tuple(x.settings[key] for key in keys) for x in recipes] == [
        (dueling, layers, rate)
        for dueling in (False, True)
        for layers in ((8,), (4, 4))
        for rate in (None, 0.0)
    ]


def runs_in(folder, *seeds):
    """Stands for finished runs of a sweep with these seeds."""
    for seed in seeds:
        run = folder / "runs" / f"seed_{seed}"
        run.mkdir(parents=True, exist_ok=True)
        (run / "finished.json").touch()


def test_all_finished_runs_of_a_sweep_are_compared(command, tmp_path, monkeypatch):
    compared = []
    command("CartPole-v1", "0..1")
    runs_in(tmp_path, 0, 1)
    (tmp_path / "runs" / "seed_7").mkdir()
    compare = comparing.compare
    monkeypatch.setattr(
        comparing, "compare", lambda *x: compared.extend(x) or compare(*x)
    )
    command("CartPole-v1", "1..2")
    assert [*dict.fromkeys(compared)] == [tmp_path / f"runs/seed_{i}" for i in range(3)]


@pytest.mark.parametrize(
    ("seeds", "words", "difference"),
    [
        ("0..1", ["--num_iterations=500", "--gamma=0.5"], r"gamma: was .*, is 0\.5"),
        (
            "0..1",
            ["--num_iterations=500", "--gamma=0.5,0.6"],
            r"swept: was \[\], is \['gamma'\]",
        ),
        ("0", ["--num_iterations=600"], "num_iterations: was 500, is 600"),
        ("0..9", ["--num_iterations=400"], "num_iterations: was 500, is 400"),
        ("0..1", ["--num_environment_steps=9000"], "num_environment_steps: was '.abse"),
    ],
)
def test_another_sweep_is_refused_in_the_folder_of_a_sweep(
    command, tmp_path, seeds, words, difference, capsys
):
    command("CartPole-v1", "0..1", "--num_iterations=500")
    runs_in(tmp_path, 0, 1)
    with pytest.raises(SystemExit):
        command("CartPole-v1", seeds, *words)
    assert re.search(difference, capsys.readouterr().err)
    (tmp_path / "programs").mkdir()
    got = command("CartPole-v1", seeds, *words, "--overwrite")
    assert len(got["programs"]) == 2
    assert {path.name for path in tmp_path.iterdir()} <= {"config.json", "lock"}


def test_a_sweep_becomes_longer_with_all_its_runs(command, tmp_path):
    command("CartPole-v1", "0..1", "--num_iterations=500")
    runs_in(tmp_path, 0, 1)
    command("CartPole-v1", "0..2", "--num_iterations=600")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["num_iterations"] == 600


def test_a_sweep_whose_settings_are_wrong_leaves_no_folder(
    command, tmp_path, monkeypatch
):
    remove = shutil.rmtree

    def remove_unlocked(folder, *rest, **options):
        assert not directory_lock.is_held(folder)  # Windows removes no open file.
        remove(folder, *rest, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_unlocked)

    def fail(*_):
        tfrl.DQN.check_setting("batch_size", 0)

    monkeypatch.setattr(sweep.sweeps, "train_in_one_program", fail)
    with pytest.raises(SystemExit):
        command("CartPole-v1", "0", f"--logdir={tmp_path / 'new'}")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("seeds", ["", "a", "3..1", "1,1", "0..2,2", "1..", "0...3"])
def test_wrong_seeds_are_told(command, seeds, capsys):
    with pytest.raises(SystemExit):
        command("CartPole-v1", seeds)
    error = capsys.readouterr().err
    assert error.startswith(f"error: seeds: got {seeds!r}, expected different numbers;")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gamma=0.9,2"], r"gamma: expected .*, got 2.*; set --gamma\."),
        (["--gamma=0.9,abc"], r"--gamma: expected a number, got 'abc'; write --gam"),
        (["--dueling=false,maybe"], r"--dueling: expected true or false, got 'maybe'"),
        (["--env=Pendulum-v1"], r"Pendulum-v1.*continuous"),
        (["--seed=3"], r"seed: got 3; give --seeds, such as 0\.\.9\."),
        (["--loss=huber,squard"], r"loss: expected one of .*got 'squard'"),
    ],
)
def test_a_wrong_value_is_told_before_anything_is_made(
    command, tmp_path, words, message, capsys
):
    with pytest.raises(SystemExit):
        command("CartPole-v1", "0..1", *words)
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # Its processes import TensorFlow, and compile a sweep.
@pytest.mark.parametrize("environment", ["CartPole-v1", "gymnasium.envs:CartPole-v0"])
def test_a_killed_sweep_goes_on_and_is_compared(tmp_path, environment):
    logdir = tmp_path / "sweep"
    command = [
        *(sys.executable, "-m", "tfrl", "sweep", "ddqn", f"--env={environment}"),
        *("--seeds=4,5", f"--logdir={logdir}", "--num_iterations=400"),
        *("--initial_collect_steps=20", "--replay_capacity=400"),
        *("--fc_layer_params=(8,)", "--num_eval_episodes=2"),
        *("--eval_interval=40", "--checkpoint_interval=40"),
        *("--gamma=0.9,0.99", "--processes=2"),
    ]
    is_program = environment == "CartPole-v1"
    checkpoints = "programs/*/sweep.npz" if is_program else "runs/*/checkpoints/*.index"
    killed = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    while not list(logdir.glob(checkpoints)):
        assert killed.poll() is None
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"4 runs in {'one program' if is_program else 'processes'}" in result.stdout
    assert "| ddqn gamma=0.9 " in result.stdout
    assert (logdir / "compare.png").exists()
    folders = list(logdir.glob("runs/*"))
    assert {path.name for path in folders} == {
        f"gamma_{gamma}_seed_{seed}" for gamma in ("0.9", "0.99") for seed in (4, 5)
    }
    for folder in folders:
        assert (folder / "policy" / "saved_model.pb").exists()
        assert json.loads((folder / "finished.json").read_text())["iteration"] == 400
    if not is_program:
        for folder in folders:
            job = json.loads((folder / "recipe.json").read_text())
            assert f"gamma_{job['recipe']['gamma']}_" in folder.name
    times = {path: path.stat().st_mtime for path in logdir.glob("runs/*/metrics.csv")}
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert times == {path: pathlib.Path(path).stat().st_mtime for path in times}
