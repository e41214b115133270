"""Acme's networks for IMPALA, one for policy and value, in the agent."""

import keras
import numpy as np
import tensorflow as tf

from tests.agents.on_policy.rollouts import collect
from tfrl import agents, networks
from tfrl.agents.impala import impala_networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


def test_a_recurrent_network_of_logits_and_values_learns():
    network = networks.Sequential(
        [
            keras.layers.LSTMCell(3),
            keras.layers.Dense(4),
            tf.nn.relu,
            networks.PolicyValueHead(num_actions=3),
        ],
        seed=1,
    )
    actor_net, value_net = impala_networks.split_network(network, OBSERVATION, CHOICE)
    agent = agents.ImpalaAgent(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.Adam(1e-2),
        actor_net,
        value_net,
    )
    agent.initialize()
    frames, _ = collect(agent, "fmmMbfm", "mmmmmmm")
    (logits, values), _ = network(
        frames.observation,
        step_type=frames.step_type,
        network_state=network.get_initial_state(2),
    )
    np.testing.assert_allclose(
        frames.policy_info["dist_params"]["logits"], logits, rtol=1e-4, atol=1e-6
    )
    found, _ = agent.collect_policy.apply_value_network(
        frames.observation, frames.step_type
    )
    np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-6)
    # Each weight is trained once. Beside them and the optimizer's slots are its two
    # counters, the agent's, and the state of the cell's random numbers.
    weights = network.trainable_variables
    before = [weight.numpy() for weight in weights]
    assert len(agent.variables()) == 2 * len(weights) + len(network.variables) + 3
    agent.train(frames)
    assert all(
        np.any(weight.numpy() != old)
        for weight, old in zip(weights, before, strict=True)
    )
