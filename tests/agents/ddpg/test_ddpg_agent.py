"""DdpgAgent: losses and updates worked by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.agents.ddpg import ddpg_agent
from tfrl.policies import ou_noise_policy
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -5, 5)
SPECS = (OBSERVATION, ACTION)
TIME_STEP = ts.time_step_spec(OBSERVATION)


def linear(kernel):
    """A layer whose output is the input times `kernel`."""
    return keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(kernel), use_bias=False
    )


def critic(of_observation, of_action):
    """A network with the value `of_observation * o + of_action * a`."""
    net = networks.CriticNetwork(SPECS)
    net.create_variables()
    net.variables[0].assign([[of_observation], [of_action]])
    return net


def make_agent(**kwargs):
    arguments = {
        "actor_network": linear(0.5),
        "critic_network": critic(1.0, 2.0),
        "target_actor_network": linear(-0.25),
        "target_critic_network": critic(3.0, 1.0),
        "actor_optimizer": keras.optimizers.SGD(0.1),
        "critic_optimizer": keras.optimizers.SGD(0.1),
        "td_errors_loss_fn": tf.math.squared_difference,
        "gamma": 0.9,
        "reward_scale_factor": 2.0,
        **kwargs,
    }
    return ddpg_agent.DdpgAgent(TIME_STEP, ACTION, **arguments)


def transitions(boundary_action=7.0):
    """A transition, a termination, a truncation and a boundary."""
    column = lambda values: tf.constant(values, tf.float32)[:, tf.newaxis]  # noqa: E731
    zeros = tf.zeros([4])
    return trajectory.Transition(
        ts.TimeStep(
            tf.constant([0, 1, 1, 2]), zeros, zeros, column([1, 2, 1, boundary_action])
        ),
        policy_step.PolicyStep(column([0.5, -1, 1, boundary_action])),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant([1.0, 3.0, 0.0, boundary_action]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            column([2, 4, -2, boundary_action]),
        ),
    )


# Q' of the next steps is 3 o - 0.25 o: 5.5 and -5.5 where it counts. The targets are
# 2 * 1 + 0.9 * 5.5, 2 * 3, and -0.9 * 5.5, and the values o + 2 a are 2, 0 and 3.
ERRORS = np.array([2 + 0.9 * 5.5 - 2, 6 - 0, -0.9 * 5.5 - 3, 0])


def test_losses_worked_by_hand():
    info = make_agent().loss(transitions())
    np.testing.assert_allclose(info.extra.td_error, ERRORS, rtol=1e-5)
    np.testing.assert_allclose(info.extra.td_loss, ERRORS**2, rtol=1e-5)
    np.testing.assert_allclose(info.extra.critic_loss, (ERRORS**2).mean(), rtol=1e-5)
    # Q(o, mu(o)) = o + 2 * 0.5 o, for o = 1, 2, 1; the boundary counts as 0.
    np.testing.assert_allclose(info.extra.actor_loss, -(2 + 4 + 2) / 4, rtol=1e-6)
    np.testing.assert_allclose(
        info.loss, info.extra.actor_loss + info.extra.critic_loss, rtol=1e-6
    )


def test_weights_multiply_the_losses_of_the_examples():
    weights = np.array([2, 0, 1, 1], np.float32)
    extra = make_agent().loss(transitions(), weights=weights).extra
    np.testing.assert_allclose(
        extra.critic_loss, (weights * ERRORS**2).mean(), rtol=1e-5
    )
    np.testing.assert_allclose(extra.actor_loss, -(2 * 2 + 2) / 4, rtol=1e-6)
    np.testing.assert_allclose(extra.td_error, ERRORS, rtol=1e-5)


@pytest.mark.parametrize(("clipping", "slope"), [(None, 2.0), (0.5, 0.5)])
def test_the_actor_follows_the_clipped_gradient_of_the_critic(clipping, slope):
    # The critic does not change, so dQ/da is 2.
    agent = make_agent(
        dqda_clipping=clipping, critic_optimizer=keras.optimizers.SGD(0.0)
    )
    before = agent.loss(transitions())
    after = agent.train(transitions())
    np.testing.assert_allclose(after.loss, before.loss, rtol=1e-6)
    # dmu/dk = o, so the mean of dQ/dk is slope * (1 + 2 + 1) / 4.
    kernel = agent._actor_network.variables[0].numpy()
    np.testing.assert_allclose(kernel, [[0.5 + 0.1 * slope]], rtol=1e-5)


def test_the_critic_is_updated_first_and_the_actor_sees_it():
    agent = make_agent()
    agent.train(transitions())
    # d(mean of squared errors)/dw = -2 mean(error * (o, a)).
    inputs = np.array([[1, 0.5], [2, -1], [1, 1], [0, 0]])
    slopes = np.array([1, 2]) + 0.1 * 2 * (ERRORS[:, None] * inputs).mean(0)
    np.testing.assert_allclose(
        agent._critic_networks[0].variables[0][:, 0], slopes, rtol=1e-5
    )
    kernel = agent._actor_network.variables[0].numpy()
    np.testing.assert_allclose(kernel, [[0.5 + 0.1 * slopes[1]]], rtol=1e-5)


def test_a_boundary_changes_no_weight():
    agents = [make_agent(), make_agent()]
    for agent, boundary in zip(agents, (7.0, -100.0), strict=True):
        agent.train(transitions(boundary))
    for one, other in zip(*(a.variables() for a in agents), strict=True):
        if "seed" not in one.name:
            np.testing.assert_array_equal(one, other)


def test_public_losses_take_time_steps():
    agent, experience = make_agent(), transitions()
    extra = agent.loss(experience).extra
    loss = agent.critic_loss(
        experience.time_step, experience.action_step.action, experience.next_time_step
    )
    np.testing.assert_array_equal(loss, extra.critic_loss)
    np.testing.assert_array_equal(
        agent.actor_loss(experience.time_step), extra.actor_loss
    )


def test_policies():
    agent = make_agent(
        actor_network=linear(0.5),
        ou_stddev=0.2,
        ou_damping=0.15,
        noise_scaled_to_spec=True,
        reset_noise_at_episode_start=True,
    )
    step = ts.restart(tf.constant([[1.0], [100.0]]), batch_size=2)
    np.testing.assert_array_equal(agent.policy.action(step).action, [[0.5], [5.0]])
    assert isinstance(agent.collect_policy, ou_noise_policy.OUNoisePolicy)
    many = ts.restart(tf.ones([4000, 1]), batch_size=4000)
    for seed in (0, 1):
        actions = agent.collect_policy.action(many, (), seed).action.numpy()
        # Reset at each first step, the noise has one step's deviation, times 5.
        np.testing.assert_allclose(actions.std(), 0.2 * 5, rtol=0.05)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"action_spec: DDPG .* agents\.DqnAgent"):
        ddpg_agent.DdpgAgent(
            TIME_STEP, BoundedTensorSpec([], tf.int32, 0, 1), linear(0.0), critic(1, 1)
        )
    with pytest.raises(ValueError, match="ou_damping"):
        make_agent(ou_damping=2.0)
    with pytest.raises(ValueError, match="dqda_clipping"):
        make_agent(dqda_clipping=-1.0)
