"""Td3Agent: losses worked by hand, smoothing, delays and twins."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.agents.td3 import td3_agent
from tfrl.policies import gaussian_policy
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -5, 5)
TIME_STEP = ts.time_step_spec(OBSERVATION)


def linear(kernel):
    """A layer whose output is the input times `kernel`."""
    return keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(kernel), use_bias=False
    )


def critic(of_observation, of_action, action_spec=ACTION):
    """A network with the value `of_observation * o + of_action * a`."""
    net = networks.CriticNetwork((OBSERVATION, action_spec))
    net.create_variables()
    number = action_spec.shape.num_elements()
    net.variables[0].assign([[of_observation], *[[of_action]] * number])
    return net


def make_agent(action_spec=ACTION, **kwargs):
    arguments = {
        "actor_network": linear(0.5),
        "critic_network": critic(1.0, 2.0, action_spec),
        "critic_network_2": critic(0.0, 1.0, action_spec),
        "target_actor_network": linear(-0.25),
        "target_critic_network": critic(3.0, 1.0, action_spec),
        "target_critic_network_2": critic(1.0, 1.0, action_spec),
        "actor_optimizer": keras.optimizers.SGD(0.1),
        "critic_optimizer": keras.optimizers.SGD(0.1),
        "td_errors_loss_fn": tf.math.squared_difference,
        "gamma": 0.9,
        "reward_scale_factor": 2.0,
        "target_policy_noise": 0.0,
        "seed": 0,
        **kwargs,
    }
    return td3_agent.Td3Agent(TIME_STEP, action_spec, **arguments)


def transitions(boundary=7.0):
    """A transition, a termination, a truncation and a boundary."""
    column = lambda values: tf.constant(values, tf.float32)[:, tf.newaxis]  # noqa: E731
    zeros = tf.zeros([4])
    return trajectory.Transition(
        ts.TimeStep(
            tf.constant([0, 1, 1, 2]), zeros, zeros, column([1, 2, 1, boundary])
        ),
        policy_step.PolicyStep(column([0.5, -1, 1, boundary])),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant([1.0, 3.0, 0.0, boundary]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            column([2, 4, -2, boundary]),
        ),
    )


# The smaller of 2.75 o and 0.75 o is 1.5 for o = 2 and -5.5 for o = -2. The targets are
# 2 * 1 + 0.9 * 1.5, 2 * 3, and -0.9 * 5.5.
TARGETS = np.array([3.35, 6.0, -4.95])
ERRORS_1 = TARGETS - [2, 0, 3]
ERRORS_2 = TARGETS - [0.5, -1, 1]


def test_losses_worked_by_hand():
    info = make_agent().loss(transitions())
    sums = [*(ERRORS_1**2 + ERRORS_2**2), 0]
    np.testing.assert_allclose(info.extra.td_loss, sums, rtol=1e-5)
    np.testing.assert_allclose(info.extra.critic_loss, np.mean(sums), rtol=1e-5)
    # The second critic is farther off in the first two transitions.
    errors = [ERRORS_2[0], ERRORS_2[1], ERRORS_1[2], 0]
    np.testing.assert_allclose(info.extra.td_error, errors, rtol=1e-5)
    # The first critic alone: o + 2 * 0.5 o, for o = 1, 2, 1.
    np.testing.assert_allclose(info.extra.actor_loss, -(2 + 4 + 2) / 4, rtol=1e-6)
    np.testing.assert_allclose(
        info.loss, info.extra.actor_loss + info.extra.critic_loss, rtol=1e-6
    )


def test_the_weights_after_an_update_worked_by_hand():
    agent = make_agent()
    agent.train(transitions())
    inputs = np.array([[1, 0.5], [2, -1], [1, 1]])
    slopes = [
        weights + 0.1 * 2 * (errors[:, None] * inputs).sum(0) / 4
        for weights, errors in (([1, 2], ERRORS_1), ([0, 1], ERRORS_2))
    ]
    for net, expected in zip(agent._critic_networks, slopes, strict=True):
        np.testing.assert_allclose(net.variables[0][:, 0], expected, rtol=1e-5)
    # The actor sees the new first critic; dmu/dk = o.
    kernel = agent._actor_network.variables[0].numpy()
    expected = 0.5 + 0.1 * slopes[0][1] * (1 + 2 + 1) / 4
    np.testing.assert_allclose(kernel, [[expected]], rtol=1e-5)


def test_weights_multiply_the_losses_of_the_examples():
    weights = np.array([2, 0, 1, 1], np.float32)
    extra = make_agent().loss(transitions(), weights=weights).extra
    sums = np.array([*(ERRORS_1**2 + ERRORS_2**2), 0])
    np.testing.assert_allclose(extra.critic_loss, (weights * sums).mean(), rtol=1e-5)
    np.testing.assert_allclose(extra.actor_loss, -(2 * 2 + 2) / 4, rtol=1e-6)


def test_a_boundary_changes_no_weight():
    agents = [make_agent(target_policy_noise=0.2) for _ in range(2)]
    for agent, boundary in zip(agents, (7.0, -100.0), strict=True):
        agent.train(transitions(boundary))
    for one, other in zip(*(a.variables() for a in agents), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scaled", [False, True])
def test_target_actions_are_smoothed_inside_an_asymmetric_spec(scaled):
    spec = BoundedTensorSpec([2], tf.float32, [-0.4, 0.0], [0.1, 4.0])
    agent = make_agent(
        spec,
        actor_network=networks.ActorNetwork(OBSERVATION, spec, seed=1),
        target_actor_network=None,
        critic_network=networks.CriticNetwork((OBSERVATION, spec), seed=2),
        critic_network_2=None,
        target_critic_network=None,
        target_critic_network_2=None,
        target_policy_noise=0.5,
        target_policy_noise_clip=0.6,
        noise_scaled_to_spec=scaled,
    )
    step = ts.restart(tf.zeros([1000, 1]), batch_size=1000)
    seed = tf.constant([3, 5], tf.int64)
    actions = agent._target_actions(step, seed).numpy()
    unit = np.array([0.25, 2.0]) if scaled else np.ones(2)
    noise = np.clip(0.5 * seeds.normal(seed, [1000, 2]).numpy(), -0.6, 0.6) * unit
    # The actor's action for zeros is the middle of the range.
    middle = np.array([-0.15, 2.0])
    expected = np.clip(middle + noise, [-0.4, 0.0], [0.1, 4.0])
    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-5)
    assert (actions.min(0) >= np.float32([-0.4, 0.0])).all()
    assert (actions.max(0) <= np.float32([0.1, 4.0])).all()
    if not scaled:
        assert np.isclose(actions[:, 0].min(), -0.4)
        np.testing.assert_allclose(actions[:, 1].max(), 2.6, rtol=1e-5)


def test_the_noise_of_the_targets_changes_with_the_train_steps():
    agent, again = (make_agent(target_policy_noise=0.2) for _ in range(2))
    before = agent.loss(transitions()).extra.td_error
    np.testing.assert_array_equal(again.loss(transitions()).extra.td_error, before)
    agent.train_step_counter.assign_add(1)
    after = agent.loss(transitions()).extra.td_error
    # The target of the termination has no next value, and a boundary no target.
    changed = np.not_equal(after, before)
    np.testing.assert_array_equal(changed, [True, False, True, False])


def test_the_actor_and_the_targets_are_updated_every_second_step():
    agent = make_agent(actor_update_period=2, target_update_period=2)
    train = tf.function(agent.train, autograph=False)

    def state():
        actor = agent._actor_network.variables[0].numpy()
        return actor, agent._target_critic_networks[1].variables[0].numpy()

    changes, losses = [], []
    for _ in range(4):
        before = state()
        losses.append(float(train(transitions()).extra.actor_loss))
        after = state()
        changes.append(
            [not np.array_equal(a, b) for a, b in zip(after, before, strict=True)]
        )
    # TF-Agents' phases: the actor at steps 1 and 3, the targets at steps 2 and 4.
    assert changes == [[True, False], [False, True], [True, False], [False, True]]
    assert losses[0] == losses[1] != losses[2] == losses[3]
    assert train.experimental_get_tracing_count() == 1


def test_twins_start_different_and_the_seeds_of_networks_are_not_needed():
    spec = (OBSERVATION, ACTION)
    agent = make_agent(
        critic_network=networks.CriticNetwork(spec, joint_fc_layer_params=(4,), seed=1),
        critic_network_2=None,
        target_critic_network=None,
        target_critic_network_2=None,
    )
    agent.initialize()
    first, second = agent._critic_networks
    assert np.all(first.variables[0].numpy() != second.variables[0].numpy())
    for net, target in zip(
        agent._critic_networks, agent._target_critic_networks, strict=True
    ):
        np.testing.assert_array_equal(net.variables[0], target.variables[0])


def test_policies():
    agent = make_agent(exploration_noise_std=0.1, noise_scaled_to_spec=True)
    step = ts.restart(tf.ones([4000, 1]), batch_size=4000)
    np.testing.assert_allclose(
        agent.policy.action(step).action[:2], [[0.5], [0.5]], rtol=1e-6
    )
    assert isinstance(agent.collect_policy, gaussian_policy.GaussianPolicy)
    actions = agent.collect_policy.action(step).action.numpy()
    np.testing.assert_allclose(actions.std(), 0.5, rtol=0.05)


@pytest.mark.slow
def test_recurrent_networks_and_nests():
    observation = {"a": OBSERVATION, "b": tf.TensorSpec([2], tf.float32)}
    action = {"u": ACTION, "v": BoundedTensorSpec([2], tf.float32, 0, 1)}
    layers = {
        "preprocessing_layers": {
            "a": keras.layers.Flatten(),
            "b": keras.layers.Flatten(),
        },
        "preprocessing_combiner": keras.layers.Concatenate(),
    }
    agent = td3_agent.Td3Agent(
        ts.time_step_spec(observation),
        action,
        networks.ActorRnnNetwork(observation, action, None, (3,), (2,), (3,), **layers),
        networks.CriticRnnNetwork(
            (observation, action), None, (3,), (3,), (3,), (2,), (3,), **layers
        ),
        keras.optimizers.Adam(),
        keras.optimizers.Adam(),
    )
    fill = lambda spec: tf.fill([2, 4, *spec.shape], 0.5)  # noqa: E731
    experience = trajectory.Trajectory(
        step_type=tf.constant([[0, 1, 2, 0]] * 2),
        observation=tf.nest.map_structure(fill, observation),
        action=tf.nest.map_structure(fill, action),
        policy_info=(),
        next_step_type=tf.constant([[1, 2, 0, 1]] * 2),
        reward=tf.ones([2, 4]),
        discount=tf.ones([2, 4]),
    )
    info = agent.train(experience)
    assert info.extra.td_error.shape == (2, 3)
    np.testing.assert_array_equal(info.extra.td_error[:, 2], [0, 0])
    assert np.isfinite(info.loss)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"agents\.ReinforceAgent"):
        make_agent(BoundedTensorSpec([1], tf.float32, -1, np.inf))
    with pytest.raises(ValueError, match="target_critic_network_2: expected None"):
        make_agent(critic_network_2=None)
    with pytest.raises(ValueError, match="target_policy_noise_clip"):
        make_agent(target_policy_noise_clip=-0.5)
    with pytest.raises(ValueError, match="actor_update_period"):
        make_agent(actor_update_period=0)
