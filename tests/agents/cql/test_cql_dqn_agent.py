"""CQL's loss on double DQN, against NumPy's doubles; the network is linear."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import variables

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
GAMMA, SCALE, ALPHA = 0.9, 2.0, 0.7
RNG = np.random.default_rng(3)
WEIGHTS, TARGET = ((RNG.normal(size=[2, 3]), RNG.normal(size=[3])) for _ in range(2))
# A transition, a termination, a truncation and a boundary.
NOW, LATER = RNG.normal(size=[2, 4, 2])
ACTIONS = np.array([2, 0, 1, 2])
REWARDS, DISCOUNTS = np.array([1, -1.5, 0.5, 100]), np.array([1.0, 0, 1, 1])
VALID = np.array([1, 1, 1, 0])


def experience(now=NOW, later=LATER, wrap=lambda x: tf.constant(x, tf.float32)):
    return trajectory.Transition(
        ts.TimeStep(tf.constant([0, 1, 1, 2]), tf.zeros(4), tf.ones(4), wrap(now)),
        policy_step.PolicyStep(tf.constant(ACTIONS, tf.int32)),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant(REWARDS, tf.float32),
            tf.constant(DISCOUNTS, tf.float32),
            wrap(later),
        ),
    )


def make(kind=agents.CqlDqnAgent, observation=OBSERVATION, **kwargs):
    """An agent with the weights above."""
    if kind is agents.CqlDqnAgent:
        kwargs = {"cql_alpha": ALPHA, **kwargs}
    agent = kind(
        ts.time_step_spec(observation),
        ACTION,
        networks.QNetwork(OBSERVATION, ACTION, fc_layer_params=None),
        keras.optimizers.SGD(0.1),
        gamma=GAMMA,
        reward_scale_factor=SCALE,
        target_update_tau=0.5,
        **kwargs,
    )
    agent.initialize()
    for network, weights in (
        (agent._q_network, WEIGHTS),
        (agent._target_q_network, TARGET),
    ):
        for variable, value in zip(network.variables, weights, strict=True):
            variables.as_tf_variable(variable).assign(value)
    return agent


def values(weights, observation):
    kernel, bias = weights
    return observation @ kernel + bias


def td_errors(weights=WEIGHTS, judge=WEIGHTS):
    best = values(judge, LATER).argmax(axis=1)
    following = values(TARGET, LATER)[range(4), best]
    target = SCALE * REWARDS + GAMMA * DISCOUNTS * following
    return VALID * (target - values(weights, NOW)[range(4), ACTIONS])


def penalties(weights=WEIGHTS):
    q = values(weights, NOW)
    return VALID * (np.log(np.exp(q).sum(axis=1)) - q[range(4), ACTIONS])


def huber(error):
    size = np.abs(error)
    return np.where(size <= 1, size**2 / 2, size - 0.5)


def loss_of(weights=WEIGHTS):
    return np.mean(huber(td_errors(weights)) + ALPHA * penalties(weights))


def test_loss_of_a_termination_a_truncation_and_a_boundary():
    loss, extra = make().loss(experience())
    np.testing.assert_allclose(loss, loss_of(), rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, td_errors(), rtol=1e-5)
    each = huber(td_errors()) + ALPHA * penalties()
    np.testing.assert_allclose(extra.td_loss, each, rtol=1e-5)
    # Errors on both sides of Huber's corner.
    assert 0 < np.sum(np.abs(td_errors()[:3]) > 1) < 3


def test_an_update_follows_the_slope_of_both_terms():
    agent = make()
    agent.train(experience())
    for i, weight in enumerate(WEIGHTS):
        expected = weight.copy()
        for index in np.ndindex(weight.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in WEIGHTS]
                moved[i][index] += step
                sides.append(loss_of(moved))
            expected[index] -= 0.1 * (sides[0] - sides[1]) / 2e-6
        found = agent._q_network.variables[i]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        target = agent._target_q_network.variables[i]
        halfway = (TARGET[i] + expected) / 2
        np.testing.assert_allclose(target, halfway, rtol=1e-4, atol=1e-5)


def test_a_boundary_changes_no_weight():
    agent = make(cql_alpha=1e3)
    only = tf.nest.map_structure(lambda x: x[3:], experience(1e10 * NOW, 1e10 * LATER))
    assert agent.train(only).loss == 0
    for found, weight in zip(agent._q_network.variables, WEIGHTS, strict=True):
        np.testing.assert_array_equal(found, weight.astype("f"))


def test_without_the_penalty_it_is_double_dqn():
    ours = make(cql_alpha=0.0).loss(experience())
    theirs = make(agents.DdqnAgent).loss(experience())
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-6)


def test_masked_actions_are_not_in_the_penalty():
    mask = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1]])
    spec = {"seen": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}

    def wrap(observation):
        seen = tf.constant(observation, tf.float32)
        return {"seen": seen, "mask": tf.constant(mask, tf.int32)}

    agent = make(
        observation=spec,
        observation_and_action_constraint_splitter=lambda x: (x["seen"], x["mask"]),
    )
    q = values(WEIGHTS, NOW)
    legal = np.log((mask * np.exp(q)).sum(axis=1)) - q[range(4), ACTIONS]
    found = agent.diagnose(experience(wrap=wrap))["cql_loss"]
    np.testing.assert_allclose(found, legal[:3].mean(), rtol=1e-5)


def test_diagnose():
    found = make().diagnose(experience())
    np.testing.assert_allclose(found["cql_loss"], penalties()[:3].mean(), rtol=1e-5)
    recorded = values(WEIGHTS, NOW)[range(4), ACTIONS][:3]
    np.testing.assert_allclose(found["q_value"], recorded.mean(), rtol=1e-5)
    error = np.abs(td_errors()[:3]).mean()
    np.testing.assert_allclose(found["td_error"], error, rtol=1e-5)


def test_a_recurrent_network_has_a_penalty_at_each_step():
    def made(kind, **kwargs):
        agent = kind(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            networks.QRnnNetwork(OBSERVATION, ACTION, lstm_size=(4,), seed=1),
            keras.optimizers.SGD(0.1),
            gamma=GAMMA,
            target_update_tau=0.5,
            **kwargs,
        )
        agent.initialize()
        return agent

    ours = made(agents.CqlDqnAgent, cql_alpha=ALPHA)
    frames = trajectory.Trajectory(
        step_type=tf.constant([[0, 1, 1], [1, 2, 0]]),
        observation=tf.constant(RNG.normal(size=[2, 3, 2]), tf.float32),
        action=tf.constant([[2, 0, 1], [1, 1, 0]]),
        policy_info=(),
        next_step_type=tf.constant([[1, 1, 1], [2, 0, 1]]),
        reward=tf.ones([2, 3]),
        discount=tf.ones([2, 3]),
    )
    q = ours._q_network(frames.observation, step_type=frames.step_type)[0].numpy()
    taken = np.take_along_axis(q, frames.action.numpy()[..., np.newaxis], 2)[..., 0]
    each = (np.log(np.exp(q).sum(axis=2)) - taken)[:, :2] * [[1, 1], [1, 0]]
    without = made(agents.DdqnAgent).loss(frames).loss
    expected = without + ALPHA * each.sum(axis=1).mean()
    np.testing.assert_allclose(ours.loss(frames).loss, expected, rtol=1e-5)


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match=r"cql_alpha: .* 0 is double DQN"):
        make(cql_alpha=-1.0)
