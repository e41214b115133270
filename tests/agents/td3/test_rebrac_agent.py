"""RebracAgent: its losses worked by hand, and learning from recorded actions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import cloning
from tfrl import agents, networks
from tfrl.networks.layers import bodies
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
# Half of the ranges: 1 and 4.
ACTION = BoundedTensorSpec([2], tf.float32, [-1, -2], [1, 6])
OBSERVED = np.array([[1.0, 0.5], [0.2, 0.7], [-0.5, 0.9], [5.0, 3.0]])
RECORDED = np.array(
    [[[0.5, 2], [0, 1]], [[-1, 0], [9, 9]], [[0, 4], [9, 9]], [[1, 1], [2, 2.0]]]
)
REWARD, DISCOUNT = np.array([1.0, -2.0, 3.0, 7.0]), np.array([1.0, 0.0, 1.0, 1.0])
KERNEL = np.array([0.5, 1.0])
CRITICS = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 1.0]])


def make(**settings):
    """An agent with the actor `KERNEL o`, and linear critics."""
    specs = (OBSERVATION, ACTION)
    twins = [networks.CriticNetwork(specs) for _ in CRITICS]
    for critic, weights in zip(twins, CRITICS, strict=True):
        critic.create_variables()
        critic.variables[0].assign(weights[:, np.newaxis])
    actor = keras.layers.Dense(
        2, kernel_initializer=lambda *_, **__: tf.constant(KERNEL[None], tf.float32)
    )
    agent = agents.RebracAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        actor,
        twins[0],
        keras.optimizers.SGD(0.1),
        keras.optimizers.SGD(0.1),
        critic_network_2=twins[1],
        td_errors_loss_fn=tf.math.squared_difference,
        **{"gamma": 0.9, "seed": 0, "target_policy_noise": 0.0, **settings},
    )
    agent.initialize()
    return agent


def frames():
    """A transition, a termination, a truncation and a boundary."""
    pairs = [[0, 1], [1, 2], [1, 2], [2, 0]]
    return trajectory.Trajectory(
        step_type=tf.constant(pairs),
        observation=tf.constant(OBSERVED[..., np.newaxis], tf.float32),
        action=tf.constant(RECORDED, tf.float32),
        policy_info=(),
        next_step_type=tf.constant([[b, 1] for _, b in pairs]),
        reward=tf.constant(np.stack([REWARD, 9 * REWARD], 1), tf.float32),
        discount=tf.constant(np.stack([DISCOUNT, DISCOUNT], 1), tf.float32),
    )


def values(observed, actions):
    return np.concatenate([observed[:, np.newaxis], actions], axis=1) @ CRITICS.T


def distance(actions, others):
    return np.sum(((actions - others) / [1, 4]) ** 2, axis=1)


def test_the_critics_loss_worked_by_hand():
    actions = np.clip(OBSERVED[:, 1:] * KERNEL, [-1, -2], [1, 6])
    penalty = 0.3 * distance(actions, RECORDED[:, 1])
    # At the end of an episode there is no next action.
    penalty[1:3] = 0
    next_values = values(OBSERVED[:, 1], actions).min(1) - penalty
    targets = REWARD + 0.9 * DISCOUNT * next_values
    errors = targets[:, np.newaxis] - values(OBSERVED[:, 0], RECORDED[:, 0])
    loss = make(critic_penalty=0.3).loss(frames())
    expected = (errors[:3] ** 2).sum() / 4
    np.testing.assert_allclose(loss.extra.critic_loss, expected, rtol=1e-5)


def test_the_actors_loss_worked_by_hand():
    actions = OBSERVED[:3, :1] * KERNEL
    smallest = values(OBSERVED[:3, 0], actions).min(1)
    size = np.abs(smallest).mean()
    expected = 0.2 * distance(actions, RECORDED[:3, 0]) - smallest / size
    loss = make(actor_penalty=0.2).loss(frames())
    np.testing.assert_allclose(loss.extra.actor_loss, expected.sum() / 4, rtol=1e-5)


def recordings(rng, number=256):
    """Single steps whose reward is greatest for the action 0.5 of the recorded ones."""
    action = rng.uniform(-0.5, 0.5, [number, 2, 1]).astype(np.float32)
    ones = tf.ones([number, 2])
    return trajectory.Trajectory(
        step_type=tf.tile([[0, 2]], [number, 1]),
        observation=tf.ones([number, 2, 1]),
        action=tf.constant(action),
        policy_info=(),
        next_step_type=tf.tile([[2, 0]], [number, 1]),
        reward=tf.constant(action[..., 0]),
        discount=0 * ones,
    )


@pytest.mark.parametrize(
    ("penalty", "low", "high"),
    [pytest.param(50.0, -0.2, 0.2, marks=pytest.mark.slow), (0.4, 0.4, 1)],
)
def test_it_learns_to_do_better_than_it_was_shown(penalty, low, high):
    action_spec = BoundedTensorSpec([1], tf.float32, -1, 1)
    specs = (OBSERVATION, action_spec)
    agent = agents.RebracAgent(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        networks.ActorNetwork(*specs, (16,), seed=1),
        networks.CriticNetwork(
            specs, joint_fc_layer_params=(16,), body=bodies.layer_normed, seed=2
        ),
        keras.optimizers.Adam(3e-3),
        keras.optimizers.Adam(3e-3),
        actor_penalty=penalty,
        actor_update_period=2,
        seed=3,
    )
    assert low <= cloning.action_after_training(agent, recordings) <= high


def test_wrong_arguments():
    for name in ("actor_penalty", "critic_penalty"):
        with pytest.raises(ValueError, match=rf"{name}: .*-1"):
            make(**{name: -1.0})
    with pytest.raises(ValueError, match="n_step_update: got 3, expected 1"):
        make(n_step_update=3)
    step = ts.restart(tf.ones([1, 1]), batch_size=1)
    transition = trajectory.Transition(
        step, policy_step.PolicyStep(tf.zeros([1, 2])), step
    )
    with pytest.raises(ValueError, match="got a Transition, expected a Trajectory"):
        make().train(transition)
