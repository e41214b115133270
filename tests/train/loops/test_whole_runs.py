"""Whole runs whose agent is on a second device, or whose operations are deterministic.

Each run is stopped in the middle by a callback, resumed with new objects, and has its
policy saved; see `scripts/whole_runs.py`.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parent / "scripts" / "whole_runs.py"
ROOT = SCRIPT.parents[4]
LOOPS = [
    "off-policy",
    "off-policy, compiled",
    "off-policy, continuous",
    "off-policy, prioritized",
    "off-policy, pipeline",
    "off-policy, native",
    "on-policy",
    "on-policy, compiled",
    "on-policy, recurrent",
    "episodic",
    "episodic, compiled",
    "offline",
    "offline, compiled",
    "dataset",
]
# Four half runs of each loop, each of which is traced.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def results():
    """What the script found: a function of what it is about and of a loop."""

    @functools.cache
    def found(what, loop):
        process = subprocess.run(
            [sys.executable, str(SCRIPT), what, loop],
            capture_output=True,
            text=True,
            cwd=ROOT,
            # What is compared is compiled alike: neither needs LLVM's optimizations.
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "XLA_FLAGS": "--xla_backend_optimization_level=0",
            },
        )
        assert process.returncode == 0, process.stderr[-3000:]
        return json.loads(process.stdout.splitlines()[-1])[loop]

    return found


each_loop = pytest.mark.parametrize("loop", LOOPS)
each_case = pytest.mark.parametrize("what", ["devices", "deterministic"])


@each_loop
@each_case
def test_a_run_is_the_same_on_another_device(results, what, loop):
    assert results(what, loop)["difference"] == 0.0
    assert results(what, loop)["moved"] > 0


@each_loop
@each_case
def test_callbacks_see_the_same(results, what, loop):
    on_host, seen = results(what, loop)["seen"]
    assert seen == on_host
    assert [entry for entry in seen if isinstance(entry, int)] == [2, 4, 6, 8]


@each_loop
@each_case
def test_a_saved_policy_acts_as_the_agent(results, what, loop):
    for agents_own, loaded in results(what, loop)["actions"]:
        assert loaded == agents_own
