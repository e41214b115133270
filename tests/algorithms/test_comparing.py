"""Runs' folders as groups: which settings divide them, and what is left out."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import tfrl
from tests.forks import REPOSITORY
from tfrl.algorithms import comparing


@pytest.fixture
def write(tmp_path):
    """Writes the folder of a run whose last return is `score`."""

    def write(name, score, algorithm="dqn", *, is_finished=True, steps=2, **config):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        made = {"algorithm": algorithm, "env": "CartPole-v1", "seed": 0, **config}
        (folder / "config.json").write_text(json.dumps(made))
        rows = [
            f"{i},{1000 * i},{i},{10.0 * i},,{score * i / steps}"
            for i in range(steps + 1)
        ]
        header = "iteration,environment_steps,train_steps,training_seconds,loss"
        lines = [f"{header},evaluation_return", *rows, ""]
        (folder / "metrics.csv").write_text("\n".join(lines))
        if is_finished:
            (folder / "finished.json").touch()
        return folder

    return write


def groups_of(compared, section=0):
    return {
        record["group"]: (record["seeds"], record["iqm"])
        for record in compared.sections[section].records
    }


def test_groups_differ_in_algorithms_and_settings_but_not_in_seeds(write, tmp_path):
    for seed in range(2):
        rates = {"learning_rate": 1e-3, "final_learning_rate": 1e-3}
        write(f"a_{seed}", 10 + seed, seed=seed, **rates, device="", log_interval=seed)
        rates = dict.fromkeys(rates, 2e-3)
        write(f"b_{seed}", 20 + seed, seed=seed, **rates, device="GPU:0")
    write("c", 5, "ppo", fc_layer_params=[8, 8])
    compared = tfrl.compare(tmp_path / "*")
    assert groups_of(compared) == {
        "dqn learning_rate=0.002": (2, 20.5),
        "dqn learning_rate=0.001": (2, 10.5),
        "ppo": (1, 5),
    }
    assert compared.sections[0].title == "CartPole-v1"


def test_a_setting_at_its_default_is_as_one_that_is_not_there(write, tmp_path):
    """Runs of earlier versions lack fields, and tuples become lists in JSON."""
    defaults = tfrl.DQN.defaults()
    write("old", 1, seed=0)
    write("new", 2, seed=1, gamma=defaults["gamma"], fc_layer_params=[100, 100])
    write("other", 3, seed=2, replay="prioritized")
    assert groups_of(tfrl.compare(tmp_path)) == {
        "dqn replay=uniform": (2, 1.5),
        "dqn replay=prioritized": (1, 3),
    }


def test_settings_for_an_environment_make_no_groups(write, tmp_path):
    for seed in range(2):
        write(f"cart_{seed}", 1, seed=seed, gamma=0.9)
        write(f"pole_{seed}", 2, seed=seed, gamma=0.8, env="Acrobot-v1")
    ranges = {"CartPole-v1": (0, 2), "Acrobot-v1": (0, 4)}
    compared = tfrl.compare(tmp_path, normalize=ranges)
    assert [each.title for each in compared.sections] == [
        "CartPole-v1",
        "Acrobot-v1",
        "all 2 environments",
    ]
    assert groups_of(compared, -1) == {"dqn": (2, 0.5)}


def test_folders_of_sweeps_and_of_many_runs_count(write, tmp_path):
    write("logs/sweep/runs/seed_0", 1, seed=0)
    write("logs/sweep/runs/seed_1", 2, seed=1)
    write("logs/alone", 3, seed=2)
    (tmp_path / "logs" / "notes.txt").touch()
    for words, seeds in (
        (["logs/sweep"], 2),
        (["logs/sweep/runs"], 2),
        (["logs/*"], 3),
        (["logs"], 1),
        (["logs/alone", "logs/*"], 3),
    ):
        compared = comparing.compare(*(tmp_path / word for word in words))
        assert groups_of(compared)["dqn"][0] == seeds


def test_unfinished_runs_and_runs_without_evaluations_are_named(write, tmp_path):
    write("done", 8, seed=0)
    short = write("short", 3, seed=1, steps=1, is_finished=False)
    empty = write("empty", 0, seed=2)
    (empty / "metrics.csv").write_text("iteration,evaluation_return\n1,\n")
    compared = tfrl.compare(tmp_path)
    assert f"Not finished: {short}." in compared.notes
    assert f"Left out, without evaluation_return: {empty}." in compared.notes
    assert any("compared at 1,000 steps" in note for note in compared.notes)
    assert groups_of(compared) == {"dqn": (2, 3.5)}


def test_a_run_from_recordings_has_updates_for_steps(write, tmp_path):
    folder = write("bc", 4, "bc", env="Pendulum-v1")
    text = (folder / "metrics.csv").read_text()
    text = re.sub(r"^(\d),\d+,", r"\1,0,", text, flags=re.MULTILINE)
    (folder / "metrics.csv").write_text(text)
    (record,) = tfrl.compare(folder).sections[0].records
    assert (record["steps"], record["seconds"]) == (2, 20)


def test_what_is_no_run_is_an_error(write, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"folder: got '.*none', which does not"
    ):
        tfrl.compare(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"which holds no config\.json, "):
        tfrl.compare(tmp_path)
    (tmp_path / "config.json").write_text('{"program": "sweep"}')
    with pytest.raises(FileNotFoundError, match="one after its first evaluation"):
        tfrl.compare(tmp_path)
    (tmp_path / "config.json").unlink()
    folder = write("run", 1)
    with pytest.raises(
        ValueError, match=r"got 'reward', .* of 1 runs .*evaluation_return"
    ):
        tfrl.compare(folder, metric="reward")
    (folder / "metrics.csv").write_text("environment_steps,evaluation_return\n1,x\n")
    with pytest.raises(ValueError, match=r"metrics\.csv: cannot be read .*numbers in"):
        tfrl.compare(folder)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_that_is_not_finite_is_named_with_its_file(write, value):
    path = write("run", 1) / "metrics.csv"
    path.write_text(path.read_text().replace(",1.0\n", f",{value}\n"))
    expected = rf"^{path}: got a number in the column evaluation_return that is not"
    with pytest.raises(ValueError, match=expected):
        tfrl.compare(path.parent)


def test_dollars_in_names_are_no_mathematics(write, tmp_path):
    for seed in range(2):
        write(f"$_{seed}", seed, r"$\frac{$", env="$x_$", seed=seed)
        write(f"b_{seed}", seed, "b$b", env="$x_$", seed=seed)
    tfrl.compare(tmp_path / "*").write(tmp_path / "out")
    assert (tmp_path / "out" / "compare.png").exists()


def test_fields_of_wrong_types_are_named_with_their_file(write, tmp_path):
    write("good", 1, gamma=0.9)
    folder = write("bad", 2, gamma="high")
    with pytest.warns(RuntimeWarning, match=rf"^{folder / 'config.json'}: gamma: got"):
        tfrl.compare(tmp_path)


def run_command(*words, expected=0):
    command = [sys.executable, "-m", "tfrl", "compare", *map(str, words)]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == expected, result.stderr
    return result.stdout + result.stderr


def test_the_command_prints_and_writes_the_comparison(write, tmp_path):
    for seed in range(4):
        write(f"dqn_{seed}", seed, seed=seed)
        write(f"ppo_{seed}", 10 + seed, "ppo", seed=seed)
    out = tmp_path / "out"
    text = run_command(
        tmp_path / "dqn_*",
        tmp_path / "ppo_*",
        f"--out={out}",
        "--normalize=CartPole-v1:0:20",
    )
    assert text == f"{(out / 'compare.md').read_text()}Outputs: {out}\n"
    assert "ppo is ahead of dqn: probability of improvement 1.00" in text
    compared = comparing.compare(
        tmp_path / "[dp]*_*", normalize={"CartPole-v1": (0, 20)}
    )
    assert str(compared) in text
    np.testing.assert_allclose(groups_of(compared)["ppo"][1], 11.5 / 20)
    assert (out / "compare.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "error: folders: got none, expected some of runs"),
        pytest.param(
            ["nowhere"],
            "error: folder: got 'nowhere', which does not exist, expected",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["a", "--normalize=Cart:1"],
            "error: normalize: got 'Cart:1', expected ENV",
            marks=pytest.mark.slow,
        ),
        (["a", "--metrik=loss"], "--metrik: unknown flag; did you mean --metric"),
    ],
)
def test_wrong_words_are_told(words, message):
    assert message in run_command(*words, expected=2)
