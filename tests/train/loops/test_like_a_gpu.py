"""The agents of the examples train where no variable of int32 can be.

The script says how a machine with a GPU is imitated. On it these tests check the
placement, the compilation and the results, but no kernel of a GPU.
"""

import functools
import json
import pathlib
import re

import pytest

from tests.train.loops.scripts import like_a_gpu

SCRIPT = "scripts/like_a_gpu.py"
README = pathlib.Path(__file__).parents[3] / "README.md"
# These environments are not written in TensorFlow, or are so in any case.
NOT_NATIVE = (
    "r2d2",
    "dqn_hindsight",
    "tqc_hindsight",
    "sac_gsde",
    "frame_stack",
    "rainbow_frame_stack",
    "overlap",
    "sac_overlap",
)
OFFLINE = ("iql", "cql", "td3_bc", "rebrac", "edac", "bc", "iql_online")
# Plain programs, too, round otherwise in parts than as one.
ROUNDED = (
    "rainbow",
    "rainbow_frame_stack",
    "sac_simba",
    "mrq_discrete",
    "dreamer",
    "dreamer_force",
)
# What may differ where sums of squares are large: RND's are in the hundreds, where
# floats are 6e-5 apart, and the gradients' of a network for rewards of -1,000 to 1,000
# are near 100,000, where they are 0.008 apart. LaProp divides gradients by their sizes,
# so the rounding errors of those near 0, which are most of a new actor's, move weights
# by a learning rate in either direction: 1e-3 on CartPole.
LARGE = {
    "ppo_rnd": 1e-3,
    "neural_epsilon_greedy": 0.02,
    "dreamer": 2e-3,
    "dreamer_force": 1e-3,
}
# The programs of a GPU cannot call rewards in Python.
HOST_REWARDS = ("tqc_hindsight",)
FAST = {("native", "dqn")}
CASES = [
    *(("gymnasium", name) for name in like_a_gpu.AGENTS),
    *(
        ("native", name)
        for name in like_a_gpu.AGENTS
        if name not in (*NOT_NATIVE, *OFFLINE)
    ),
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


def test_the_list_has_each_agent_of_the_readmes_table():
    rows = [line for line in README.read_text().splitlines() if line.startswith("|")]
    commands = re.findall(r"`(?:tfrl )?train ([^`]+)`", "".join(rows))
    assert len(commands) > 20
    assert set(commands) <= set(like_a_gpu.AGENTS.values())


@pytest.mark.parametrize(("kind", "name"), marked(*CASES))
def test_an_agent_trains_as_on_one_device(printed, kind, name):
    found = printed(kind, name)
    for mode, compiled in (("False", False), ("auto", True), ("True", True)):
        if compiled and name in HOST_REWARDS:
            assert "a row_format with functions on the host" in found[mode]["refused"]
            continue
        assert found[mode]["compiled"] == compiled
        assert found[mode]["devices"] == ["CPU:1"]
        assert found[mode]["int32"] == []
        # A compiled program rounds otherwise than a plain one.
        exact = not compiled and name not in ROUNDED
        allowed = LARGE.get(name, 1e-4)
        assert found[mode]["difference"] <= (0 if exact else allowed)
        assert found[mode]["same_counts"]
        assert found[mode]["train_steps"] > 0


@pytest.mark.parametrize(("kind", "name"), marked(("sweep", "dqn"), ("sweep", "ppo")))
def test_the_runs_of_a_sweep_train_as_on_one_device(printed, kind, name):
    found = printed(kind, name)
    assert found["int32"] == []
    assert max(found["differences"]) <= 1e-4
