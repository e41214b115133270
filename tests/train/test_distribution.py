"""Agents and learners under a `tf.distribute` strategy of two replicas.

See `scripts/agents_on_replicas.py` and `scripts/replicas.py`. Plain gradient descent
and clipping are on: both show a gradient that is scaled or clipped at the wrong place,
which Adam would hide.
"""

import functools
import json
import pathlib
import re

import pytest

from tests.pairs import some_slow
from tests.train.scripts.agents_on_replicas import AGENTS

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
TRAINED = pytest.mark.parametrize("case", ["dqn", "compiled"])
FAST = ("DqnAgent", "PPOClipAgent, 2 epochs")


@pytest.fixture(scope="module")
def printed(run):
    """What the script prints: a function of its argument."""

    @functools.cache
    def run_part(part):
        ended = run(str(SCRIPTS / "replicas.py"), part)
        assert ended.code == 0, ended.errors[-3000:]
        return json.loads(ended.output.splitlines()[-1])

    return run_part


@pytest.fixture(scope="module")
def results(printed):
    return printed("fast")


@pytest.fixture
def result(printed, case):
    """The result of a case."""
    return printed("fast")[case]


@pytest.fixture(scope="module")
def compared(run):
    """In what an agent of two replicas differs: a function of the agent's name."""

    @functools.cache
    def run_agents(names):
        ended = run(str(SCRIPTS / "agents_on_replicas.py"), *names)
        assert ended.code == 0, ended.errors[-3000:]
        lines = [line for line in ended.output.splitlines() if line.startswith("{")]
        return dict(item for line in lines for item in json.loads(line).items())

    others = sorted(set(AGENTS) - set(FAST))
    # All together take longer than a script may.
    groups = [FAST, *(tuple(others[i : i + 6]) for i in range(0, len(others), 6))]
    return lambda name: run_agents(next(g for g in groups if name in g))[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", some_slow(AGENTS, fast=FAST))
def test_the_halves_of_a_batch_give_the_weights_of_one_device(compared, name):
    found = compared(name)
    # Normalizations of six units make more of rounding errors.
    limit = 5e-5 if name == "MrqAgent" else 1e-5
    assert found["difference"] < limit
    assert found["between_replicas"] == 0
    assert found["moved"] > 1e-3
    assert found["scalars"] < 1e-4


@pytest.mark.slow
@TRAINED
def test_two_replicas_learn_what_one_device_learns(result):
    assert result["difference"] < 1e-5
    assert result["moved"] > 0.01
    assert result["train_steps"] == [5, 5]


@pytest.mark.slow
@TRAINED
def test_the_replicas_stay_equal(result):
    assert result["between_replicas"] == 0


@pytest.mark.slow
@TRAINED
def test_losses_are_averaged_and_examples_put_together(result):
    alone, shared = result["losses"]
    assert shared == pytest.approx(alone, rel=1e-4)
    assert result["td_errors"] < 1e-4


@pytest.mark.slow
@TRAINED
def test_each_replica_is_traced_once(result):
    assert result["traces"] == 2


@pytest.mark.slow
def test_the_learner_of_ppo_divides_minibatches_among_the_replicas(printed):
    # Minibatches of 10 steps on one device, and of 5 in each replica; each learner goes
    # on from the checkpoint of another.
    result = printed("slow")["ppo_learner"]
    assert result["difference"] < 1e-5
    assert result["between_replicas"] == 0
    assert result["moved"] > 0.01
    # Two runs of two epochs of 20 steps.
    assert result["train_steps"] == [8, 8]
    alone, shared = result["losses"]
    assert shared == pytest.approx(alone, rel=1e-4)


@pytest.mark.slow
def test_parts_from_outside_of_the_scope_are_refused_by_name(results):
    refusals = results["refusals"]
    for part, name in (
        ("agent", "network"),
        ("optimizer", r"optimizer 'sgd_?\d*'"),
        ("train_step", "train_step"),
    ):
        assert re.match(
            f"strategy: the {name} has the variable .* made outside of the strategy's",
            refusals[part],
        ), refusals[part]


@pytest.mark.slow
def test_an_optimizer_that_clips_is_refused(results):
    assert re.match(
        r"optimizer 'sgd_?\d*': got clipnorm=1\.0 with several replicas",
        results["refusals"]["clipping"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keras", "v1"])
def test_the_mean_of_the_gradients_is_clipped(results, kind):
    # The mean of 1 and 5, clipped to 2, times the rate 0.1. The mean of the clipped
    # ones would move by 0.15.
    assert results["updated"][kind] == pytest.approx([0.8, 0.8], rel=1e-6)


@pytest.mark.slow
def test_a_checkpoint_of_replicas_is_one_of_a_device(results):
    # As far from one that was trained on one device as the replicas are.
    assert results["restored"] == results["dqn"]["difference"]


@pytest.mark.slow
def test_a_policy_from_the_scope_acts_outside_of_it(results):
    assert results["action"] == [2]


@pytest.mark.slow
def test_the_examples_of_a_batch_get_the_numbers_of_one_device(results):
    examples, shared, _ = results["numbers"]["alone"]
    for drawn in results["numbers"]["shared"]:  # Of a static and a dynamic shape.
        first, second = drawn[0]
        assert first + second == examples
        assert drawn[1] == [shared, shared]


@pytest.mark.slow
def test_seeds_of_replicas_differ(results):
    for _, _, seeds in results["numbers"]["shared"]:
        assert len({*map(tuple, seeds), (1, 2)}) == 3
