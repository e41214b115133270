"""A run is trained again, and every bit of its final weights is compared."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tfrl.experiments import verification
from tfrl.policies.saving import weights

MADE = {"processor": "Fast 9000 avx2", "numpy": "2.4.6", "commit": "a"}
FOLDER = pathlib.Path("logs/run")


def begun(**row):
    return {"versions": {**MADE}, **row}


@pytest.fixture
def ended(tmp_path):
    (tmp_path / "finished.json").touch()
    return tmp_path


def test_a_run_that_has_ended_can_be_repeated(ended):
    verification.check_repeatable(ended, {"algorithm": "dqn"}, [begun()])


@pytest.mark.parametrize(
    ("config", "rows", "why"),
    [
        ({"algorithm": "dqn"}, [], "one program with others"),
        ({"algorithm": "mine"}, [begun()], "no algorithm of tfrl"),
        ({"algorithm": "dqn", "own_parts": "network"}, [begun()], r"own \(network\)"),
        ({"algorithm": "dqn", "actors": {"x": 1}}, [begun()], "processes of their own"),
        (
            {"algorithm": "dqn"},
            [begun(), begun(resumed_without=["environment"])],
            "without environment",
        ),
        (
            {"algorithm": "dqn"},
            [begun(), {"versions": {**MADE, "portable": "yes"}}],
            "only some",
        ),
    ],
)
def test_why_a_run_cannot_be_repeated(ended, config, rows, why):
    with pytest.raises(ValueError, match=rf"^folder: got .* repeated, but .*{why}"):
        verification.check_repeatable(ended, config, rows)


def test_a_run_that_has_not_ended_cannot_be_repeated(tmp_path):
    with pytest.raises(ValueError, match="it has not ended; the command that"):
        verification.check_repeatable(tmp_path, {"algorithm": "dqn"}, [begun()])


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
