"""D4pgAgent: losses and updates worked by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([2], tf.float32, -5, 5)
TIME_STEP = ts.time_step_spec(OBSERVATION)
GAMMA = 0.5
# Logits (0, 0, o + a_0 + 2 a_1) of the atoms 0, 1 and 2; the target has (0, 0, o).
ONLINE = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 2]], np.float32)
TARGET = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float32)


def linear(kernel):
    """An actor whose actions are the observation times `kernel`, a vector."""
    return keras.layers.Dense(
        2, kernel_initializer=lambda *_, **__: tf.constant([kernel]), use_bias=False
    )


def critic(kernel):
    """A network whose logits of 0, 1 and 2 are (o, a_0, a_1) times `kernel`."""
    head = networks.DiscreteValuedHead(
        0.0, 2.0, 3, w_init=keras.initializers.Constant(kernel)
    )
    return networks.Sequential([networks.CriticMultiplexer(), head])


def make_agent(**kwargs):
    arguments = {
        "actor_network": linear([1.0, 0.0]),
        "critic_network": critic(ONLINE),
        "target_actor_network": linear([3.0, 3.0]),
        "target_critic_network": critic(TARGET),
        "actor_optimizer": keras.optimizers.SGD(1.0),
        "critic_optimizer": keras.optimizers.SGD(1.0),
        "gamma": GAMMA,
        "n_step_update": 1,
        **kwargs,
    }
    return agents.D4pgAgent(TIME_STEP, ACTION, **arguments)


def transitions(boundary=7.0):
    """A transition, a termination, a truncation and a boundary."""
    column = lambda values: tf.constant(values, tf.float32)[:, tf.newaxis]  # noqa: E731
    zeros = tf.zeros([4])
    return trajectory.Transition(
        ts.TimeStep(
            tf.constant([0, 1, 1, 2]), zeros, zeros, column([1, -1, 0, boundary])
        ),
        policy_step.PolicyStep(
            tf.constant([[0, 0], [1, 1], [1, -1], [boundary, boundary]], tf.float32)
        ),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant([1.0, 1.25, 0.0, boundary]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            column([1, 9, -2, boundary]),
        ),
    )


def softmax(last):
    """The probabilities of logits (0, 0, last), `[..., 3]`."""
    last = np.asarray(last, np.float64)
    logits = np.stack([0 * last, 0 * last, last], axis=-1)
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


# Logits o + a_0 + 2 a_1 of the actions taken.
PREDICTIONS = softmax([1, 2, -1])
# Target logits are the next observation: 1 + z/2 = 1, 1.5, 2 gives (0, p_0 + p_1/2,
# p_1/2 + p_2); the reward 1.25 alone (0, 3/4, 1/4); and z/2 = 0, 0.5, 1 gives
# (p_0 + p_1/2, p_1/2 + p_2, 0), all on the atoms 0, 1 and 2.
P, R = softmax(1), softmax(-2)
TARGETS = np.array(
    [
        [0, P[0] + P[1] / 2, P[1] / 2 + P[2]],
        [0, 0.75, 0.25],
        [R[0] + R[1] / 2, R[1] / 2 + R[2], 0],
    ]
)
CROSS_ENTROPIES = np.append(-(TARGETS * np.log(PREDICTIONS)).sum(axis=1), 0)
ATOMS = np.arange(3)
ERRORS = np.append((TARGETS - PREDICTIONS) @ ATOMS, 0)


def test_losses_worked_by_hand():
    info = make_agent().loss(transitions())
    np.testing.assert_allclose(info.extra.td_loss, CROSS_ENTROPIES, rtol=1e-5)
    np.testing.assert_allclose(info.extra.td_error, ERRORS, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        info.extra.critic_loss, CROSS_ENTROPIES.mean(), rtol=1e-5
    )
    # mu(o) = (o, 0), so the logit is 2 o for o = 1, -1, 0; the boundary counts as 0.
    values = softmax([2, -2, 0]) @ ATOMS
    np.testing.assert_allclose(info.extra.actor_loss, -values.sum() / 4, rtol=1e-5)
    np.testing.assert_allclose(
        info.loss, info.extra.actor_loss + info.extra.critic_loss, rtol=1e-6
    )


def test_weights_multiply_the_losses_of_the_examples():
    weights = np.array([2, 0, 1, 1], np.float32)
    extra = make_agent().loss(transitions(), weights=weights).extra
    expected = (weights * CROSS_ENTROPIES).mean()
    np.testing.assert_allclose(extra.critic_loss, expected, rtol=1e-5)
    np.testing.assert_allclose(extra.td_loss, CROSS_ENTROPIES, rtol=1e-5)


@pytest.mark.parametrize("limit", [None, 0.5])
def test_the_actor_follows_the_gradient_of_the_mean_clipped_by_its_norm(limit):
    agent = make_agent(dqda_clipping=limit, critic_optimizer=keras.optimizers.SGD(0.0))
    agent.train(transitions())
    # dE[Z]/dlogit is p_2 (2 - E[Z]), and dlogit/da is (1, 2).
    p = softmax([2, -2, 0])
    dqda = (p[:, 2] * (2 - p @ ATOMS))[:, np.newaxis] * np.array([1, 2])
    if limit is not None:
        norms = np.linalg.norm(dqda, axis=1, keepdims=True)
        assert (norms > limit).any()
        assert (norms < limit).any()
        dqda *= np.minimum(limit / norms, 1)
    observations = np.array([[1], [-1], [0]])
    expected = np.array([1, 0]) + (dqda * observations).sum(axis=0) / 4
    np.testing.assert_allclose(agent._actor_network.variables[0][0], expected, 1e-5)


def test_gradients_are_clipped_together():
    agent = make_agent(
        gradient_clipping=0.01, actor_optimizer=keras.optimizers.SGD(0.0)
    )
    agent.train(transitions())
    kernel, bias = (v.numpy() for v in agent._critic_networks[0].variables)
    inputs = np.array([[1, 0, 0], [-1, 1, 1], [0, 1, -1]])
    slopes = [inputs.T @ (PREDICTIONS - TARGETS) / 4]
    slopes.append((PREDICTIONS - TARGETS).sum(axis=0) / 4)
    norm = np.sqrt(sum((slope**2).sum() for slope in slopes))
    np.testing.assert_allclose(kernel, ONLINE - 0.01 * slopes[0] / norm, atol=1e-6)
    np.testing.assert_allclose(bias, -0.01 * slopes[1] / norm, atol=1e-6)


def test_a_boundary_changes_no_weight():
    both = [make_agent(seed=1), make_agent(seed=1)]
    for agent, boundary in zip(both, (4.0, -3.0), strict=True):
        agent.train(transitions(boundary))
    for one, other in zip(*(agent.variables() for agent in both), strict=True):
        np.testing.assert_array_equal(one, other)


def test_returns_over_several_steps():
    """Two frames with reward 1; the second terminates."""
    agent = make_agent(n_step_update=3)
    frames = trajectory.Trajectory(
        step_type=tf.constant([[0, 1, 2, 0]]),
        observation=tf.constant([[[1.0], [2.0], [3.0], [4.0]]]),
        action=tf.zeros([1, 4, 2]),
        policy_info=(),
        next_step_type=tf.constant([[1, 2, 0, 1]]),
        reward=tf.constant([[1.0, 1.0, 9.0, 9.0]]),
        discount=tf.constant([[1.0, 0.0, 1.0, 1.0]]),
    )
    # The return is 1 + 1/2, half on the atom 1 and half on 2.
    expected = -np.log(softmax(1)) @ [0, 0.5, 0.5]
    np.testing.assert_allclose(agent.loss(frames).extra.td_loss, [expected], rtol=1e-5)


def test_targets_are_copied_at_times():
    agent = make_agent(target_update_period=2, seed=1)
    targets = [target for _, target in agent._target_pairs]
    before = [v.numpy() for target in targets for v in target.variables]
    agent.train(transitions())
    for old, new in zip(before, [v for t in targets for v in t.variables], strict=True):
        np.testing.assert_array_equal(old, new)
    agent.train(transitions())
    for network, target in agent._target_pairs:
        for ours, theirs in zip(network.variables, target.variables, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_policies():
    agent = make_agent(sigma=0.3, actor_network=linear([1.0, 4.99]))
    time_step = ts.restart(tf.ones([2000, 1]), batch_size=2000)
    np.testing.assert_allclose(
        agent.policy.action(time_step).action[0], [1, 4.99], rtol=1e-6
    )
    noisy = agent.collect_policy.action(time_step, seed=tf.constant([1, 2])).action
    np.testing.assert_allclose(np.std(noisy[:, 0]), 0.3, rtol=0.05)
    assert noisy[:, 1].numpy().max() == 5


def test_an_observation_network_is_trained_by_the_critic():
    shared = keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
    agent = make_agent(observation_network=shared)
    info = agent.train(transitions())
    np.testing.assert_allclose(info.extra.td_loss, CROSS_ENTROPIES, rtol=1e-5)
    # The logit of 2 has the slope 1 by the embedding.
    slope = (PREDICTIONS - TARGETS)[:, 2] @ [1, -1, 0] / 4
    np.testing.assert_allclose(shared.kernel, [[1 - slope]], rtol=1e-5)


def test_networks_that_do_not_fit_are_refused():
    two_values = [
        networks.CriticMultiplexer(),
        networks.DiscreteValuedHead([0.0, 0.0], [1.0, 2.0], 3),
    ]
    for critic in (
        networks.CriticNetwork((OBSERVATION, ACTION)),
        networks.Sequential(two_values),
    ):
        with pytest.raises(
            ValueError, match=r"end with a DiscreteValuedHead\(vmin, vmax"
        ):
            make_agent(critic_network=critic, target_critic_network=None)
    with pytest.raises(NotImplementedError, match="D4PG expects one without a state"):
        make_agent(
            actor_network=networks.ActorRnnNetwork(OBSERVATION, ACTION, lstm_size=(3,)),
            target_actor_network=None,
        )


def test_the_best_action_of_a_bandit_is_found():
    """The reward 1 - (a_0 - 1)^2 - (a_1 + 2)^2, and no next step."""
    agent = agents.D4pgAgent(
        TIME_STEP,
        ACTION,
        linear([0.0, 0.0]),
        networks.Sequential(
            [
                networks.CriticMultiplexer(),
                networks.LayerNormMLP([32], activate_final=True),
                networks.DiscreteValuedHead(-40.0, 1.0, 21),
            ],
            seed=0,
        ),
        keras.optimizers.Adam(0.03),
        keras.optimizers.Adam(0.03),
        n_step_update=1,
        seed=0,
    )
    agent.initialize()

    @tf.function(autograph=False)
    def train():
        def update(i):
            a = tf.random.stateless_uniform([64, 2], [0, i], -5.0, 5.0)
            reward = 1 - tf.reduce_sum((a - tf.constant([1.0, -2.0])) ** 2, axis=-1)
            steps, ones = tf.ones([64], tf.int32), tf.ones([64])
            observation = ones[:, tf.newaxis]
            agent.train(
                trajectory.Transition(
                    ts.TimeStep(steps, 0 * ones, ones, observation),
                    policy_step.PolicyStep(a),
                    ts.TimeStep(2 * steps, reward, 0 * ones, observation),
                )
            )
            return i + 1

        tf.while_loop(lambda i: i < 600, update, [tf.constant(0)])

    train()
    best = agent.policy.action(ts.restart(tf.ones([1, 1]), batch_size=1)).action[0]
    np.testing.assert_allclose(best, [1, -2], atol=0.3)
