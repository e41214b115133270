"""Runs in processes of their own; a small module stands for the command."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import tfrl
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import children

# Counts its starts, as a run that resumes, and ends with the status that it is given.
MODULE = """
import json, pathlib, signal, sys, time
path = pathlib.Path(sys.argv[1])
status, folder = json.loads(path.read_text())["options"]["status"], path.parent
with open(folder / "starts", "a") as file:
    file.write("x")
if status < 0:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    (folder / "ready").touch()
    while not (folder / "may_end").exists():
        time.sleep(0.01)
print("said", file=sys.stderr)
sys.exit(max(status, 0))
"""


RECIPE = Recipe.of(tfrl.DQN)


@pytest.fixture
def make_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_run.py").write_text(MODULE)

    def make(*statuses):
        return [
            children.ChildRun(tmp_path / str(i), RECIPE, {"status": s}, "a_run")
            for i, s in enumerate(statuses)
        ]

    return make


def test_runs_that_fail_are_named_with_what_they_print(make_runs):
    runs, ended = make_runs(0, 3), []
    statuses = children.train_all(runs, 2, lambda *end: ended.append(end))
    assert statuses == [0, 3]
    assert sorted(ended) == [(0, 0), (1, 3)]
    assert runs[1].output.read_text() == "said\n"
    children.check(runs[:1], statuses[:1])
    named = rf"1 of 2 runs failed; .*: {re.escape(str(runs[1].output))}\. The same"
    with pytest.raises(RuntimeError, match=named):
        children.check(runs, statuses)


def test_the_next_run_may_depend_on_the_last_and_a_run_may_end_early(make_runs):
    first, second, third = make_runs(0, -1, 0)
    seen = []

    def runs():
        yield first
        assert seen == [(0, 0)]
        yield second
        assert seen == [(0, 0), (1, 0)]
        yield third

    statuses = children.train_all(
        runs(),
        1,
        lambda *end: seen.append(end),
        lambda number: number == 1 and (second.folder / "ready").exists(),
    )
    assert statuses == [0, 0, 0]


def test_the_recipe_of_a_run_makes_the_same_algorithm(tmp_path):
    dqn = tfrl.DQN("Acrobot-v1", gamma=0.9, seed=3)
    dqn.train_for(500)
    job = children.ChildRun(tmp_path / "run", dqn.recipe(), {"films": False}).job()
    assert job.module == "tfrl.experiments.children"
    written = json.loads(pathlib.Path(*job.arguments).read_text())
    assert written["options"] == {"films": False}
    made = Recipe.from_json(written["recipe"]).make()
    iterations = dqn.schedule_iterations
    assert made.settings == {**dqn.settings, "num_iterations": iterations}
    assert made.length == dqn.length
    assert made.world.name == "Acrobot-v1"
    assert written["recipe"]["num_environment_steps"] == 500


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (signal.SIGINT, "KeyboardInterrupt()"),
        pytest.param(signal.SIGTERM, "Terminated(143)", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_runs_and_starts_no_others(
    make_runs, tmp_path, number, error
):
    runs = make_runs(-1, -1)
    code = f"""
import pathlib
import tfrl
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import children
recipe = Recipe.of(tfrl.DQN)
runs = [
    children.ChildRun(
        pathlib.Path({str(tmp_path)!r}, str(i)), recipe, {{"status": -1}}, "a_run"
    )
    for i in range(2)
]
try:
    children.train_all(runs, 1)
except (KeyboardInterrupt, SystemExit) as error:
    print(repr(error))
"""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
    while not (runs[0].folder / "ready").exists():
        assert parent.poll() is None
        time.sleep(0.02)
    parent.send_signal(number)
    assert parent.communicate()[0] == f"{error}\n"
    assert not runs[1].folder.exists()
