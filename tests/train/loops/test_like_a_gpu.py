"""The agents of the examples train where no variable of int32 can be.

The script says how a machine with a GPU is imitated. On it these tests check the
placement, the compilation and the results, but no kernel of a GPU.
"""

import functools
import json
import pathlib

import pytest

SCRIPT = "scripts/like_a_gpu.py"
ONLINE = [
    "dqn",
    "sac",
    "tqc",
    "discrete_sac",
    "td3",
    "ddpg",
    "d4pg",
    "dmpo",
    "mpo",
    "ppo",
    "a2c",
    "impala",
    "pqn",
    "reinforce",
]
OFFLINE = ["iql", "cql", "bc"]
FAST = {("native", "dqn")}
CASES = [
    *((kind, name) for kind in ("gymnasium", "native") for name in ONLINE),
    *(("gymnasium", name) for name in OFFLINE),
]


def marked(*cases):
    return [
        pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow)
        for case in cases
    ]


@pytest.fixture(scope="module")
def printed(forks):
    """What the script prints for two arguments."""
    path = str(pathlib.Path(__file__).parent / SCRIPT)

    @functools.cache
    def run(*arguments):
        code, output, errors = forks.run(path, *arguments)
        assert code == 0, errors[-3000:]
        return json.loads(output.splitlines()[-1])

    return run


@pytest.mark.parametrize(("kind", "name"), marked(*CASES))
def test_an_agent_trains_as_on_one_device(printed, kind, name):
    found = printed(kind, name)
    for mode, compiled in (("False", False), ("auto", True), ("True", True)):
        assert found[mode]["compiled"] == compiled
        assert found[mode]["devices"] == ["CPU:1"]
        assert found[mode]["int32"] == []
    # A compiled program rounds otherwise than a plain one.
    for mode, tolerance in (("False", 0), ("auto", 1e-4)):
        assert found[mode]["difference"] <= tolerance
        assert found[mode]["same_counts"]
        assert found[mode]["train_steps"] > 0


@pytest.mark.parametrize(("kind", "name"), marked(("sweep", "dqn"), ("sweep", "ppo")))
def test_the_runs_of_a_sweep_train_as_on_one_device(printed, kind, name):
    found = printed(kind, name)
    assert found["int32"] == []
    assert max(found["differences"]) <= 1e-4
