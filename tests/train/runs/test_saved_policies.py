import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.networks import q_network
from tfrl.specs import tensor_spec
from tfrl.train.runs import run_directory, saved_policies
from tfrl.trajectories import time_step as ts


@pytest.fixture(scope="module")
def agent():
    observation = tf.TensorSpec([2], tf.float32)
    action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    return dqn_agent.DqnAgent(
        ts.time_step_spec(observation),
        action,
        q_network.QNetwork(observation, action, fc_layer_params=(3,), seed=0),
        keras.optimizers.Adam(),
    )


@pytest.fixture(scope="module")
def policies(agent):
    return saved_policies.SavedPolicies(agent)


@pytest.fixture
def directory(tmp_path):
    return run_directory.RunDirectory(tmp_path, {})


def step_of(path):
    loaded = tf.saved_model.load(str(path))
    return int(loaded.get_train_step())


def repair(policies, directory, best=3.0, iteration=10):
    return policies.repair([directory.policy], directory, iteration, best)


def test_a_policy_is_replaced_whole(policies, agent, directory):
    for step in (1, 2):
        agent.train_step_counter.assign(step)
        policies.save(directory.policy)
        assert step_of(directory.policy) == step
    assert {p.name for p in directory.path.iterdir()} == {"config.json", "policy"}


def test_a_replacement_that_was_cut_short_is_completed(policies, agent, directory):
    agent.train_step_counter.assign(3)
    policies.save(directory.policy)
    directory.policy.rename(directory.policy.with_name("policy.old"))
    agent.train_step_counter.assign(4)
    assert repair(policies, directory) == 3.0
    assert step_of(directory.policy) == 3


@pytest.mark.parametrize("content", [None, "not a folder"])
def test_a_missing_policy_is_written_with_a_warning(policies, directory, content):
    if content is not None:
        directory.policy.write_text(content)
    with pytest.warns(RuntimeWarning, match="mean return unknown.*return 3, is lost"):
        assert repair(policies, directory) == -np.inf
    assert (directory.policy / "saved_model.pb").exists()
    assert not directory.policy.with_name("policy.old").exists()


@pytest.mark.parametrize(
    ("measured", "lost"), [("3.0", False), ("2.5", True), ("", True), ("x", True)]
)
def test_the_current_policy_may_be_the_best_one(policies, directory, measured, lost):
    directory.metrics_csv.write_text(
        f"iteration,evaluation_return\n5,3.0\n10,{measured}\n"
    )
    with pytest.warns(RuntimeWarning, match="POLICY LOST") as caught:
        best = repair(policies, directory)
    assert ("The best policy so far" in str(caught[0].message)) == lost
    assert best == {"3.0": 3.0, "2.5": 2.5}.get(measured, -np.inf)


def test_another_policy_does_not_change_the_best_return(policies, directory):
    with pytest.warns(RuntimeWarning, match="final_policy is missing; it was written"):
        assert policies.repair([directory.final_policy], directory, 10, 3.0) == 3.0
