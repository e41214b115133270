"""DroQ: where its critics drop units, and a bandit that it solves."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)


def make(rate=0.01, layers=(32,), dropout=0.5, **kwargs):
    specs = OBSERVATION, ACTION
    actor = networks.ActorDistributionNetwork(
        *specs,
        fc_layer_params=(16,),
        continuous_projection_net=functools.partial(
            agents.sac.TanhNormalProjectionNetwork,
            std_transform=agents.sac.std_clip_transform,
        ),
        seed=1,
    )
    critic = networks.CriticEnsembleNetwork(
        specs,
        2,
        fc_layer_params=layers,
        dropout=dropout,
        layer_norm=True,
        last_kernel_initializer=keras.initializers.RandomUniform(-1, 1),
        seed=2,
    )
    agent = agents.DroqAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        critic,
        actor,
        *(keras.optimizers.Adam(rate) for _ in range(3)),
        gamma=0.9,
        seed=3,
        **{"initial_log_alpha": -4.0, "target_update_tau": 0.01, **kwargs},
    )
    agent.initialize()
    return agent


def transitions(action, discount=1.0):
    """Single steps with the reward -(a - 0.3)^2."""
    number = action.shape[0]
    zeros, observed = tf.zeros([number]), tf.ones([number, 1])
    first = ts.TimeStep(tf.zeros([number], tf.int32), zeros, zeros, observed)
    reward = -tf.square(action[:, 0] - 0.3)
    last = ts.TimeStep(
        tf.ones([number], tf.int32), reward, tf.fill([number], discount), observed
    )
    return trajectory.Transition(first, policy_step.PolicyStep(action), last)


def states(network):
    """The numbers that the network's dropout has drawn so far."""
    return [v.numpy()[1] for v in network.variables if "seed_generator" in v.name]


def test_units_are_dropped_in_targets_and_in_the_actors_loss_of_training_alone():
    agent = make()
    batch = transitions(tf.zeros([64, 1]))
    for training in (False, True):
        own = agent._batch(batch, None, training)
        for compute in (agent._targets, lambda b: agent._actor_loss(b)[0]):
            first, second = (compute(own).numpy() for _ in range(2))
            assert np.array_equal(first, second) != training


def test_the_actor_maximises_the_mean_of_the_critics_and_targets_have_the_minimum():
    agent = make(initial_log_alpha=-40.0)
    (critic, target) = agent._target_pairs[0]
    for network, values in ((critic, [2.0, 6.0]), (target, [3.0, 5.0])):
        *_, kernel, bias = network.trainable_variables
        kernel.assign(tf.zeros_like(kernel.value))
        bias.assign(np.reshape(values, bias.shape))
    loss = agent.loss(transitions(tf.fill([4, 1], 0.3)))
    np.testing.assert_allclose(loss.extra.actor_loss, -4.0, rtol=1e-6)
    # Errors of 0.9 * 3 - 2 and 0.9 * 3 - 6.
    expected = 0.5 * (0.7**2 + 3.3**2)
    np.testing.assert_allclose(loss.extra.critic_loss, expected, rtol=1e-5)


def test_targets_follow_the_weights_and_keep_their_random_states():
    agent = make(actor_update_period=2, target_update_tau=1.0)
    networks_ = agent._target_pairs[0]
    before = list(map(states, networks_))
    for _ in range(3):
        agent.train(transitions(tf.zeros([4, 1])))
    for one, other in zip(*(n.trainable_variables for n in networks_), strict=True):
        np.testing.assert_array_equal(one, other)
    drawn = np.subtract(list(map(states, networks_)), before)
    # Three predictions and two losses of the actor; three targets.
    assert drawn.tolist() == [[5], [3]]


def normalized(units):
    return networks.Sequential(
        [keras.layers.BatchNormalization(), keras.layers.Dense(units)],
        input_spec=OBSERVATION,
    )


def test_targets_get_the_statistics_of_layers():
    """The policy acts through the target of the observation network."""
    agent = make(observation_network=normalized(1), target_update_tau=0.5)
    network, target = agent._embedding.target_pairs[0]
    agent.train(transitions(tf.zeros([4, 1])))
    # All observations are 1, of which Keras adds 0.01 to a mean of 0.
    for one in (network, target):
        (mean,) = (v for v in one.variables if v.name == "moving_mean")
        np.testing.assert_allclose(mean, [0.01], rtol=1e-5)


def test_it_finds_the_best_action_of_a_bandit():
    agent = make(2e-2, (16,), 0.01, actor_update_period=4)
    train = tf.function(lambda a: agent.train(transitions(a, 0.0)), autograph=False)
    rng = np.random.default_rng(0)
    for _ in range(400):
        train(tf.constant(rng.uniform(-1, 1, [64, 1]), tf.float32))
    step = ts.restart(tf.ones([1, 1]), batch_size=1)
    np.testing.assert_allclose(agent.policy.action(step).action, [[0.3]], atol=0.2)
