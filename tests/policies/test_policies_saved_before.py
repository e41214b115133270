"""A policy that an earlier release saved is loaded, and acts as it did.

Commit 164c8db wrote the data:

    cd CHECKOUT_OF_164c8db
    PYTHONPATH=. python THIS_FILE FOLDER_OF_THIS_FILE/saved_before
"""

import pathlib
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.networks import q_network
from tfrl.policies import policy_loader, policy_saver
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

DATA = pathlib.Path(__file__).parent / "saved_before"
OBSERVATIONS = np.random.default_rng(0).normal(size=[8, 3]).astype(np.float32)


def make_policy():
    observation = tf.TensorSpec([3], tf.float32, "observation")
    action = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3, "action")
    network = q_network.QNetwork(observation, action, fc_layer_params=(4,), seed=3)
    agent = dqn_agent.DqnAgent(
        ts.time_step_spec(observation), action, q_network=network, optimizer=None
    )
    return agent.policy


def write(folder):
    policy = make_policy()
    shutil.rmtree(folder, ignore_errors=True)
    policy_saver.PolicySaver(policy, batch_size=None).save(str(folder / "policy"))
    step = policy.action(ts.restart(tf.constant(OBSERVATIONS), batch_size=8))
    np.save(folder / "actions.npy", step.action)


def test_it_acts_as_it_did():
    policy = policy_loader.load(str(DATA / "policy"))
    actions = [policy.action(ts.restart(x)).action for x in OBSERVATIONS]
    expected = np.load(DATA / "actions.npy")
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(actions, expected)


def test_it_says_that_it_was_saved_without_a_distribution():
    policy = policy_loader.load(str(DATA / "policy"))
    with pytest.raises(FileNotFoundError, match=r"found no distributions\.json in"):
        policy.distribution(ts.restart(OBSERVATIONS, batch_size=8))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
