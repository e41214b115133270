"""TF-Agents' dueling Q-network, whose values are computed here by NumPy, too."""

import keras
import numpy as np
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.networks import dueling_q_network
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
BATCH = np.random.default_rng(0).normal(size=[7, 4]).astype(np.float32)


def make(**kwargs):
    return dueling_q_network.DuelingQNetwork(
        OBSERVATION, ACTION, fc_layer_params=(5,), seed=1, **kwargs
    )


def test_a_value_is_of_the_state_and_of_the_action_less_the_mean():
    network = make()
    network.create_variables()
    weights = {tuple(v.shape): v.numpy() for v in network.variables}
    hidden = np.maximum(BATCH @ weights[4, 5] + weights[5,], 0)
    advantages = hidden @ weights[5, 3] + weights[3,]
    value = hidden @ weights[5, 1] + weights[1,]
    expected = value + advantages - advantages.mean(axis=1, keepdims=True)
    values, state = network(BATCH)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert state == ()
    assert network.name == "DuelingQNetwork"
    np.testing.assert_allclose(weights[1,], -0.2, rtol=1e-6)
    assert make(dueling_layer_params=(6,)).copy(seed=2)(BATCH)[0].shape == (7, 3)


def test_a_dueling_double_agent_bootstraps_from_the_action_that_the_network_prefers():
    agent = dqn_agent.D3qnAgent(
        ts.time_step_spec(OBSERVATION), ACTION, make(), keras.optimizers.SGD(0.1)
    )
    agent.initialize()
    before = ts.restart(tf.constant(BATCH[:2]), batch_size=2)
    after = ts.transition(tf.constant(BATCH[2:4]), reward=tf.constant([1.0, 2.0]))
    actions = policy_step.PolicyStep(tf.constant([0, 2], tf.int64))
    frames = tf.nest.map_structure(
        lambda x: tf.stack([x, x], axis=1),
        trajectory.from_transition(before, actions, after),
    )
    frames = frames._replace(
        observation=tf.stack([BATCH[:2], BATCH[2:4]], axis=1),
        next_step_type=tf.ones([2, 2], tf.int32),
        step_type=tf.constant([[0, 1], [0, 1]]),
    )
    network = make()
    q_values = network(BATCH[:2])[0].numpy()[[0, 1], [0, 2]]
    next_values = network(BATCH[2:4])[0].numpy().max(axis=1)
    errors = agent.loss(frames).extra.td_error
    np.testing.assert_allclose(
        errors, np.array([1, 2]) + next_values - q_values, rtol=1e-5
    )
    assert np.isfinite(agent.train(frames).loss)
