"""CrossQ's loss against NumPy, its statistics, and a bandit that it solves."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.networks.layers import bodies
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
TANH_NORMAL = functools.partial(
    agents.sac.TanhNormalProjectionNetwork,
    std_transform=agents.sac.std_clip_transform,
)
WEIGHTS = np.array([[1.0, -0.5, 0.25], [0.5, 2.0, -1.0]])
BIASES = np.array([0.2, -0.1])
GAMMA, ALPHA = 0.9, 0.3


def make(layers=(), body=bodies.batch_renormed, rate=0.1, **kwargs):
    specs = OBSERVATION, ACTION
    actor = networks.ActorDistributionNetwork(
        *specs,
        fc_layer_params=layers,
        body=body,
        continuous_projection_net=TANH_NORMAL,
        seed=1,
    )
    critic = networks.CriticEnsembleNetwork(
        specs, 2, fc_layer_params=layers, body=body, seed=2
    )
    arguments = {"gamma": GAMMA, "initial_log_alpha": np.log(ALPHA), "seed": 3}
    agent = agents.CrossQAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        critic,
        actor,
        *(keras.optimizers.Adam(rate) for _ in range(3)),
        **{**arguments, **kwargs},
    )
    agent.initialize()
    return agent


def transitions(boundary=5.0):
    """A transition, a termination, a truncation and a boundary."""
    rng = np.random.default_rng(0)
    observed, reached = rng.normal([[[1.0, 0.0]], [[2.0, 1.0]]], size=(2, 4, 2))
    observed[3] = reached[3] = boundary
    steps = [
        ts.TimeStep(
            tf.constant(types),
            tf.constant([1.0, -2.0, 3.0, boundary]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            tf.constant(values, tf.float32),
        )
        for types, values in (([1, 1, 1, 2], observed), ([1, 2, 2, 0], reached))
    ]
    actions = tf.constant([[0.5], [-0.5], [0.1], [0.9]])
    return trajectory.Transition(steps[0], policy_step.PolicyStep(actions), steps[1])


def statistics(network):
    """The running means and variances of a network's layers."""
    return [
        v.numpy() for v in network.variables if "moving" in getattr(v, "path", v.name)
    ]


def unchanged(before, network):
    return all(
        np.array_equal(a, b) for a, b in zip(before, statistics(network), strict=True)
    )


def with_weights(agent):
    """Gives both critics their weights; without hidden layers they are linear."""
    kernel, bias = agent._critic_networks[0].trainable_variables[2:]
    kernel.assign(WEIGHTS[..., np.newaxis])
    bias.assign(BIASES[:, np.newaxis, np.newaxis])
    return agent


def by_hand(agent, batch):
    """The critics' loss in float64, the inputs that count, and the errors."""
    seed = tf.constant([3, 0], tf.int64)
    own, _ = seeds.split_seed(seeds.split_seed(seed, 3)[0], 2)
    drawn, log_prob = agent._draw(batch.next_time_step, own)
    halves = [
        np.concatenate([step.observation.numpy(), action.numpy()], axis=1)
        for step, action in (
            (batch.time_step, batch.action_step.action),
            (batch.next_time_step, drawn),
        )
    ]
    x = np.concatenate(halves).astype(np.float64)
    counted = np.concatenate([halves[0][:3], halves[1][:3]]).astype(np.float64)
    x = (x - counted.mean(0)) / np.sqrt(counted.var(0) + 1e-3)
    now, after = np.split(x @ WEIGHTS.T + BIASES, 2)
    soft = after.min(1) - ALPHA * log_prob.numpy()
    reward, discount = batch.next_time_step.reward, batch.next_time_step.discount
    targets = reward.numpy() + GAMMA * discount.numpy() * soft
    errors = targets[:3, np.newaxis] - now[:3]
    return 0.5 * (errors**2).sum() / 4, counted, errors


@pytest.mark.parametrize("boundary", [5.0, -100.0])
def test_the_critics_loss_and_statistics_worked_by_hand(boundary):
    agent, batch = with_weights(make()), transitions(boundary)
    expected, counted, _ = by_hand(agent, batch)
    loss = agent.train(batch)
    np.testing.assert_allclose(loss.extra.critic_loss, expected, rtol=1e-5)
    mean, variance = statistics(agent._critic_networks[0])
    np.testing.assert_allclose(mean[0], 0.01 * counted.mean(0), rtol=1e-4)
    np.testing.assert_allclose(variance[0], 0.99 + 0.01 * counted.var(0), rtol=1e-5)


def test_no_gradient_flows_into_the_targets():
    agent, batch = with_weights(make()), transitions()
    _, _, errors = by_hand(agent, batch)
    own = agent._in_turn(agent._batch(batch, None, True))[0][1]
    bias = agent._critic_networks[0].trainable_variables[-1]
    with tf.GradientTape() as tape:
        loss, _ = agent._critic_loss(own)
    gradient = tape.gradient(loss, [bias.value])[0][:, 0, 0]
    np.testing.assert_allclose(gradient, -2 * errors.sum(0) / 4, rtol=1e-4)


def test_only_updates_change_the_statistics_each_its_own():
    agent, batch = make((4,), actor_update_period=2), transitions()
    (critic,), actor = agent._critic_networks, agent._actor_network
    before = statistics(critic), statistics(actor)
    agent.loss(batch)
    agent.diagnose(batch)
    agent.policy.action(batch.time_step)
    assert unchanged(before[0], critic)
    assert unchanged(before[1], actor)
    moved = []
    for _ in range(3):
        before = statistics(critic), statistics(actor)
        agent.train(batch)
        moved.append(
            (not unchanged(before[0], critic), not unchanged(before[1], actor))
        )
    assert moved == [(True, True), (True, False), (True, True)]
    counts = [int(v.numpy()) for v in agent.variables() if "num_updates" in v.name]
    # Two layers of the critic in three updates, and two of the actor in two.
    assert counts == [3, 3, 2, 2]


def test_there_are_no_target_networks():
    agent = make()
    assert not agent._target_pairs
    assert "target_weights" not in agent.weights_by_name()
    for name in ("target_update_tau", "target_update_period", "observation_network"):
        with pytest.raises(ValueError, match=f"{name}: got 1, expected None"):
            make(**{name: 1})


def test_it_finds_the_best_action_of_a_bandit():
    agent = make(
        (16,),
        functools.partial(bodies.batch_renormed, momentum=0.9, warm_up=100),
        rate=2e-2,
        initial_log_alpha=-4.0,
        greedy_eval=True,
    )
    zeros = tf.zeros([64])

    @tf.function(autograph=False)
    def update(observed, action):
        first = ts.TimeStep(tf.zeros([64], tf.int32), zeros, zeros, observed)
        reward = -tf.square(action[:, 0] - 0.3)
        last = ts.TimeStep(tf.fill([64], 2), reward, zeros, observed)
        agent.train(trajectory.Transition(first, policy_step.PolicyStep(action), last))

    rng = np.random.default_rng(0)
    for _ in range(400):
        update(
            tf.constant(rng.normal(size=[64, 2]), tf.float32),
            tf.constant(rng.uniform(-1, 1, [64, 1]), tf.float32),
        )
    step = ts.restart(tf.constant([[1.0, 0.2], [-1.0, 0.8]]), batch_size=2)
    np.testing.assert_allclose(agent.policy.action(step).action, [[0.3]] * 2, atol=0.15)
