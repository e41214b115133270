"""A run is trained again, and every bit of its final weights is compared."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

import tfrl
from tfrl.algorithms.recipe import Recipe
from tfrl.command import verify
from tfrl.experiments import verification
from tfrl.policies.saving import weights

MADE = {"processor": "Fast 9000 avx2", "numpy": "2.4.6", "commit": "a"}
FOLDER = pathlib.Path("logs/run")
DQN = Recipe.of(tfrl.DQN)


def begun(**row):
    return {"versions": {**MADE}, **row}


@pytest.fixture
def ended(tmp_path):
    (tmp_path / "finished.json").touch()
    return tmp_path


def test_a_run_that_has_ended_can_be_repeated(ended):
    assert verification.check_repeatable(ended, DQN, [begun()]) is DQN


@pytest.mark.parametrize(
    ("recipe", "rows", "why"),
    [
        (DQN, [], "one program with others"),
        (None, [begun()], "no algorithm of tfrl"),
        (
            dataclasses.replace(DQN, own_parts="network"),
            [begun()],
            r"own \(network\)",
        ),
        (
            dataclasses.replace(DQN, actors={"x": 1}),
            [begun()],
            "processes of their own",
        ),
        (
            DQN,
            [begun(), begun(resumed_without=["environment"])],
            "without environment",
        ),
        (
            DQN,
            [begun(), {"versions": {**MADE, "portable": "yes"}}],
            "only some",
        ),
    ],
)
def test_why_a_run_cannot_be_repeated(ended, recipe, rows, why):
    with pytest.raises(ValueError, match=rf"^folder: got .* repeated, but .*{why}"):
        verification.check_repeatable(ended, recipe, rows)


def test_a_run_that_has_not_ended_cannot_be_repeated(tmp_path):
    with pytest.raises(ValueError, match="it has not ended; the command that"):
        verification.check_repeatable(tmp_path, DQN, [begun()])


def test_variables_that_differ_in_a_bit_are_named(monkeypatch):
    saved = {
        "old": {"w/0": np.zeros([2, 3]), "w/1": np.zeros([2])},
        "new": {"w/0": np.zeros([2, 3]), "w/1": np.array([0, 1e-9])},
    }
    monkeypatch.setattr(weights, "read", lambda path: saved[path])
    assert verification.differences("old", "old") == {}
    assert verification.differences("old", "new") == {"w/1": ((2,), 1e-9)}
    saved["new"].pop("w/0")
    with pytest.raises(ValueError, match="other names or shapes"):
        verification.differences("old", "new")


def test_the_verdict_says_where_both_were_made():
    old = {**MADE, "portable": "yes"}
    new = {**old, "processor": "Slow 1 avx512f", "commit": "b"}
    same = verification.verdict(FOLDER, {}, old, new)
    assert same.is_same
    assert same.text == (
        f"{FOLDER}: the same final weights, trained again on Slow 1 avx512f. The run "
        "was portable and made on Fast 9000 avx2."
    )
    other = verification.verdict(FOLDER, {"w/1": ((2,), 1e-9)}, old, new)
    assert not other.is_same
    assert other.text == (
        f"{FOLDER}: other final weights: w/1 [2] by 1e-09 differ. The run was portable "
        "and made on Fast 9000 avx2; other than now: processor Fast 9000 avx2, now "
        "Slow 1 avx512f."
    )
    longer = [{"num_iterations": [10, 2_000]}]
    found = verification.verdict(FOLDER, {"w/1": ((2,), 1e-9)}, old, old, longer)
    assert "num_iterations was changed from 10 to 2,000 on the way" in found.text
    assert verification.verdict(FOLDER, {}, old, old, longer).is_same


@pytest.fixture
def stub(ended, monkeypatch):
    """A run that has ended, and a child that does what a test says."""
    config = {"algorithm": "dqn", "env": "CartPole-v1", "num_iterations": 10**14}
    (ended / "config.json").write_text(json.dumps(config))
    row = json.dumps({"iteration": 0, **begun()})
    (ended / "diagnostics.jsonl").write_text(f"{row}\n")

    def give(status, output="", seconds=0.0):
        def train_all(runs, most, *, ends_early):
            now = time.monotonic()
            monkeypatch.setattr(time, "monotonic", lambda: now + seconds)
            runs[0].folder.mkdir()
            runs[0].output.write_text(output)
            return [-15 if ends_early(0) else status]

        monkeypatch.setattr(verification.children, "train_all", train_all)
        return ended

    return give


def test_a_run_that_takes_too_long_is_given_up(stub, capsys):
    folder = stub(0, seconds=7201)
    with pytest.raises(RuntimeError, match=r"takes more than 2 hours; raise --max_hou"):
        verification.verify(folder, 2)
    said = capsys.readouterr().err
    assert "Training again for 100,000,000,000,000 iterations" in said


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("Traceback (most recent call last):\n  x\nValueError: no\n\n", "ValueErr"),
        ("", "it ended with status 1."),
    ],
)
def test_a_child_that_fails_is_told_in_its_last_line(output, why, stub):
    with pytest.raises(RuntimeError, match=rf"be trained again: {why}") as told:
        verification.verify(stub(1, output, seconds=7199), 2)
    assert "Traceback" not in str(told.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected an integer"),
        ({"env": "No-v0"}, "'No-v0', expected a name that is registered"),
        ({"num_iterations": 2**80}, "num_iterations: expected an integer in"),
    ],
)
def test_settings_are_checked_before_a_process_is_started(changed, message, stub):
    folder = stub(1, "it was started")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **changed}))
    with pytest.raises(ValueError, match=f"^{config}: .*{message}"):
        verification.verify(folder, 24)


@pytest.mark.parametrize("name", ["initial_run", "data"])
def test_the_command_reads_no_files_that_the_folder_names(name, stub, capsys):
    folder = stub(1, "it was started")
    config = folder / "config.json"
    changed = {"algorithm": "iql", name: "/home/me/*"}
    config.write_text(json.dumps({**json.loads(config.read_text()), **changed}))
    with pytest.raises(SystemExit):
        verify.main([str(folder)])
    said = capsys.readouterr().err
    assert f"{config}: {name} is '/home/me/*', which would be read; if you tru" in said
    with pytest.raises(SystemExit):
        verify.main([str(folder), "--trust"])
    assert "which would be read" not in capsys.readouterr().err


def command(*words):
    """Runs `tfrl`, which starts itself again and so is a process of its own."""
    line = [sys.executable, "-m", "tfrl", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.mark.slow
def test_a_portable_run_is_verified_until_its_seed_is_changed(tmp_path):
    short = ("--num_iterations=8", "--initial_collect_steps=64", "--nojit_compile")
    flags = ("--portable", "--nofilm", "--noreport", "--quiet", *short)
    trained = command("train", "dqn", *flags, f"--logdir={tmp_path / 'run'}")
    assert trained.returncode == 0, trained.stderr
    verified = command("verify", tmp_path / "run")
    assert verified.returncode == 0, verified.stderr
    assert "the same final weights" in verified.stdout
    assert "The run was portable" in verified.stdout
    config = tmp_path / "run" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "seed": 1}))
    verified = command("verify", tmp_path / "run")
    assert verified.returncode == 1, verified.stderr
    assert "other final weights" in verified.stdout
