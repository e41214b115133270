"""Agents that begin with the weights of an earlier run."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tests.agents.ppo import test_ppo_agent, test_rnd
from tests.pairs import some_slow
from tfrl import train
from tfrl.savers import checkpoint_files, whole_checkpoints
from tfrl.trajectories import time_step as ts
from tfrl.utils import reward_normalizer, tensor_normalizer, variables

OBSERVATION = tf.TensorSpec([3], tf.float32)
# With networks of one kind, several, recurrent ones, and trained numbers beside them.
NAMES = ["DqnAgent", "PPOClipAgent-recurrent", "SacAgent", "DmpoAgent"]


def make(name, size=3, **kwargs):
    observation = tf.TensorSpec([size], tf.float32)
    return every_agent.KINDS[name].make(ts.time_step_spec(observation), **kwargs)


def with_normalizers(num_envs, seed):
    return make(
        "DqnAgent",
        seed=seed,
        observation_normalizer=tensor_normalizer.StreamingTensorNormalizer(OBSERVATION),
        reward_normalizer=reward_normalizer.RewardNormalizer(num_envs),
    )


def disturb(agent):
    """Gives all floating-point variables other values, and counts to all integers."""
    for number, variable in enumerate(agent.variables):
        variable = variables.as_tf_variable(variable)
        new = tf.zeros(variable.shape, tf.float64) + 0.5 + number
        variable.assign(tf.cast(new, variable.dtype))


def save(agent, logdir):
    return whole_checkpoints.Checkpointer(
        logdir / "checkpoints", best_return=tf.Variable(1.0), agent=agent
    ).save(7)


def by_key(agent):
    named = checkpoint_files.named_variables(tf.train.Checkpoint(agent=agent))
    return {key: variable.numpy() for key, variable in named}


def is_weight(key, value):
    is_float = np.issubdtype(value.dtype, np.floating)
    return (is_float and "optimizer" not in key) or "_moments/count/" in key


@pytest.mark.parametrize("name", some_slow(NAMES, fast=["SacAgent"]))
def test_an_agent_takes_the_weights_and_keeps_its_optimizers_and_counters(
    name, tmp_path
):
    earlier = make(name, rate=1e-2)
    disturb(earlier)
    path = save(earlier, tmp_path)
    agent = make(name, rate=1e-3, seed=2)
    before, saved = by_key(agent), by_key(earlier)
    assert train.load_weights(agent, tmp_path) == path
    after = by_key(agent)
    for key, value in after.items():
        source = saved if is_weight(key, value) else before
        np.testing.assert_array_equal(value, source[key], key)
    rates = [v for k, v in after.items() if "_learning_rate" in k]
    np.testing.assert_allclose(rates, 1e-3, rtol=1e-6)
    assert int(agent.train_step_counter) == 0


def test_rnd_keeps_its_networks_and_the_counts_of_its_statistics(tmp_path):
    earlier, agent = (test_ppo_agent.make(rnd=test_rnd.rnd()) for _ in range(2))
    disturb(earlier)
    save(earlier, tmp_path)
    train.load_weights(agent, tmp_path)
    after, saved = by_key(agent), by_key(earlier)
    of_rnd = [key for key in after if "_rnd/" in key]
    assert sum("/count/" in key for key in of_rnd) == 2
    for key in of_rnd:
        # The returns so far belong to the earlier run's environments.
        expected = 0.0 if "_returns/" in key else saved[key]
        np.testing.assert_array_equal(after[key], expected, key)


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [("CrossQAgent", True), ("DroqAgent", False)],
)
def test_networks_keep_counts_but_not_the_states_of_generators(name, is_kept, tmp_path):
    earlier, agent = make(name, seed=1), make(name, seed=2)
    disturb(earlier)
    save(earlier, tmp_path)
    before, saved = by_key(agent), by_key(earlier)
    train.load_weights(agent, tmp_path)
    after = by_key(agent)
    # Batch renormalization has counts, and dropout has generators.
    integers = [
        key
        for key, value in after.items()
        if "_network" in key and not np.issubdtype(value.dtype, np.floating)
    ]
    assert integers
    for key in integers:
        source = saved if is_kept else before
        np.testing.assert_array_equal(after[key], source[key], key)


def test_normalizers_keep_their_statistics_and_their_counts(tmp_path):
    earlier = with_normalizers(num_envs=2, seed=1)
    disturb(earlier)
    save(earlier, tmp_path)
    # Another number of environments, whose returns begin at 0.
    agent = with_normalizers(num_envs=5, seed=2)
    train.load_weights(agent, tmp_path)
    for kind in ("observation_normalizer", "reward_normalizer"):
        ours, theirs = (
            {v.name: v for v in variables.tracked_variables(getattr(a, kind))}
            for a in (agent, earlier)
        )
        assert "count:0" in ours
        for name in ours.keys() - {"returns:0"}:
            np.testing.assert_array_equal(ours[name], theirs[name], name)
    np.testing.assert_array_equal(agent.reward_normalizer.returns, np.zeros(5))


def test_the_optimizer_may_be_of_another_kind(tmp_path):
    earlier = make("DqnAgent", seed=1)
    save(earlier, tmp_path)
    agent = every_agent.agents.DqnAgent(
        earlier.time_step_spec,
        earlier.action_spec,
        every_agent.Parts((OBSERVATION, earlier.action_spec), (6,), 2).q(),
        keras.optimizers.SGD(0.1),
        target_update_tau=0.5,
    )
    agent.initialize()
    # The folder of the checkpoints itself will do, as a Learner makes it.
    train.load_weights(agent, tmp_path / "checkpoints")
    saved, after = by_key(earlier), by_key(agent)
    weights = [key for key in after if is_weight(key, after[key])]
    assert weights
    for key in weights:
        np.testing.assert_array_equal(after[key], saved[key], key)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"layers": (5,)}, [r"kernel: saved float32 \(3, 6\), here float32 \(3, 5\)"]),
        ({"size": 4}, [r"kernel: saved float32 \(3, 6\), here float32 \(4, 6\)"]),
        ({"layers": (6, 6)}, [r"saved none, here float32 \(3,\)"]),
        ({"layers": ()}, [r"variable_3: saved float32 \(3,\), here none"]),
    ],
    ids=["units", "observation", "more layers", "fewer layers"],
)
def test_other_networks_are_refused_and_nothing_changes(arguments, lines, tmp_path):
    save(make("DqnAgent"), tmp_path)
    agent = make("DqnAgent", seed=2, **arguments)
    before = by_key(agent)
    with pytest.raises(whole_checkpoints.CheckpointError) as error:
        train.load_weights(agent, tmp_path)
    for line in lines:
        assert error.match(line)
    assert error.match("had other weights than this one")
    assert error.match(r"Give this agent the networks and normalizers of that run, ")
    assert error.match(r"its settings are in .*config\.json")
    for key, value in by_key(agent).items():
        np.testing.assert_array_equal(value, before[key], key)


def test_a_normalizer_that_the_agent_lacks_is_named(tmp_path):
    save(with_normalizers(2, 1), tmp_path)
    with pytest.raises(
        whole_checkpoints.CheckpointError,
        match=r"reward_normalizer/_moments/avg: saved float32 \(\), here none",
    ):
        train.load_weights(make("DqnAgent"), tmp_path)


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path):
    earlier = make("DqnAgent")
    whole = save(earlier, tmp_path)
    checkpointer = whole_checkpoints.Checkpointer(
        tmp_path / "checkpoints", agent=earlier
    )
    damaged = checkpointer.save(8)
    with open(f"{damaged}.index", "r+b") as file:
        file.truncate(10)
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED"):
        assert train.load_weights(make("DqnAgent", seed=2), tmp_path) == whole


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path):
    message = "^initial_run: got '.*nowhere', where there is no checkpoint"
    with pytest.raises(FileNotFoundError, match=message):
        train.load_weights(make("DqnAgent"), tmp_path / "nowhere")
