"""Td3BcAgent: its actor's loss worked by hand, and learning from recorded actions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import cloning
from tfrl import agents, networks
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
# Half of the ranges: 1 and 4.
ACTION = BoundedTensorSpec([2], tf.float32, [-1, -2], [1, 6])
OBSERVED = np.array([1.0, 2.0, -1.0, 5.0])
RECORDED = np.array([[0.5, 2.0], [-1, 0], [0, 4], [1, 1.0]])
KERNEL = np.array([0.5, 1.0])


def make(critic_weights=(1.0, 2.0, -1.0), ensemble=False, **settings):
    """An agent with the actor `KERNEL o`, and a linear first critic."""
    specs = (OBSERVATION, ACTION)
    if ensemble:
        critic = networks.CriticEnsembleNetwork(specs, 2, fc_layer_params=())
        critic.create_variables()
        weights = np.array([critic_weights, [9.0, 9.0, 9.0]])
        critic.variables[0].assign(weights[..., np.newaxis])
    else:
        critic = networks.CriticNetwork(specs, joint_fc_layer_params=None)
        critic.create_variables()
        critic.variables[0].assign(np.array(critic_weights)[:, np.newaxis])
    actor = keras.layers.Dense(
        2, kernel_initializer=lambda *_, **__: tf.constant(KERNEL[None], tf.float32)
    )
    return agents.Td3BcAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        actor,
        critic,
        keras.optimizers.SGD(0.1),
        keras.optimizers.SGD(0.0),
        **{"gamma": 0.9, "seed": 0, **settings},
    )


def transitions(boundary=7.0):
    """Three transitions and a boundary."""
    observed = np.array([*OBSERVED[:3], boundary])[:, np.newaxis]
    steps = [
        ts.TimeStep(
            tf.constant(types),
            tf.zeros([4]),
            tf.ones([4]),
            tf.constant(observed, tf.float32),
        )
        for types in ([0, 1, 1, 2], [1, 1, 2, 0])
    ]
    action = policy_step.PolicyStep(tf.constant(RECORDED, tf.float32))
    return trajectory.Transition(steps[0], action, steps[1])


def by_hand(kernel, alpha, mean_size=None):
    """The actor's loss, and the mean size of the values."""
    observed = OBSERVED[:3, np.newaxis]
    actions = observed * kernel
    values = observed[:, 0] + 2 * actions[:, 0] - actions[:, 1]
    mean_size = np.abs(values).mean() if mean_size is None else mean_size
    distances = np.mean(((actions - RECORDED[:3]) / [1, 4]) ** 2, axis=1)
    return (distances - alpha * values / mean_size).sum() / 4, mean_size


def test_the_actors_loss_worked_by_hand():
    expected, _ = by_hand(KERNEL, 1.5)
    for boundary in (7.0, -100.0):
        loss = make(alpha=1.5).loss(transitions(boundary)).extra.actor_loss
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
    tenfold = make((10.0, 20.0, -10.0), alpha=1.5).loss(transitions())
    np.testing.assert_allclose(tenfold.extra.actor_loss, expected, rtol=1e-5)


def test_the_actor_follows_the_first_critic_of_an_ensemble():
    expected, _ = by_hand(KERNEL, 1.5)
    loss = make(alpha=1.5, ensemble=True).train(transitions())
    np.testing.assert_allclose(loss.extra.actor_loss, expected, rtol=1e-5)


def test_no_gradient_flows_into_the_size_of_the_values():
    agent = make(alpha=1.5)
    agent.train(transitions())
    _, size = by_hand(KERNEL, 1.5)
    slope = [
        (by_hand(KERNEL + h, 1.5, size)[0] - by_hand(KERNEL - h, 1.5, size)[0]) / 2e-4
        for h in 1e-4 * np.eye(2)
    ]
    moved = agent._actor_network.variables[0].numpy()[0]
    np.testing.assert_allclose(moved, KERNEL - 0.1 * np.array(slope), rtol=1e-4)


def test_values_of_zero_leave_the_distances_alone():
    expected, _ = by_hand(KERNEL, 0.0)
    agent = make((0.0, 0.0, 0.0), alpha=2.5)
    np.testing.assert_allclose(
        agent.loss(transitions()).extra.actor_loss, expected, rtol=1e-5
    )


def recordings(rng, number=256):
    """Single steps whose reward is greatest for the action 0.5 of the recorded ones."""
    action = rng.uniform(-0.5, 0.5, [number, 1]).astype(np.float32)
    zeros, ones = tf.zeros([number]), tf.ones([number])
    first = ts.TimeStep(tf.zeros([number], tf.int32), zeros, ones, tf.ones([number, 1]))
    last = ts.TimeStep(
        tf.fill([number], 2), tf.constant(action[:, 0]), zeros, tf.ones([number, 1])
    )
    return trajectory.Transition(first, policy_step.PolicyStep(action), last)


@pytest.mark.parametrize(
    ("alpha", "low", "high"),
    [pytest.param(0.0, -0.1, 0.1, marks=pytest.mark.slow), (2.5, 0.4, 1.0)],
)
def test_it_learns_to_do_better_than_it_was_shown(alpha, low, high):
    action_spec = BoundedTensorSpec([1], tf.float32, -1, 1)
    specs = (OBSERVATION, action_spec)
    agent = agents.Td3BcAgent(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        networks.ActorNetwork(*specs, (16,), seed=1),
        networks.CriticNetwork(specs, joint_fc_layer_params=(16,), seed=2),
        keras.optimizers.Adam(3e-3),
        keras.optimizers.Adam(3e-3),
        alpha=alpha,
        actor_update_period=2,
        seed=3,
    )
    assert low <= cloning.action_after_training(agent, recordings) <= high


def test_a_negative_alpha_is_refused():
    with pytest.raises(ValueError, match=r"alpha: .*-1"):
        make(alpha=-1.0)
