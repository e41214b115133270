"""QT-Opt's loss against NumPy, its delayed networks, and a bandit that it solves."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous as continuous
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
GAMMA = 0.9


class Parabola(networks.Network):
    """Q(s, a) = height * s - (a - peak)^2, whose weights are height and peak."""

    def __init__(self, height, peak, name="Parabola"):
        super().__init__((OBSERVATION, ACTION), name=name)
        self._weights = [
            self.add_weight(
                shape=[], initializer=keras.initializers.Constant(value), name=name
            )
            for name, value in (("height", height), ("peak", peak))
        ]

    def call(self, inputs, step_type=None, network_state=()):
        observation, action = inputs
        height, peak = self._weights
        return height * observation[:, 0] - (action[:, 0] - peak) ** 2, network_state


def make(network=None, optimizer=None, **kwargs):
    arguments = {"gamma": GAMMA, "num_samples_cem": 64, "seed": 3, **kwargs}
    return agents.QtOptAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        Parabola(1.0, 0.25) if network is None else network,
        optimizer or keras.optimizers.SGD(0.1),
        continuous.GaussianActionsSampler(ACTION),
        **arguments,
    )


def transitions(boundary=5.0):
    """A transition, a termination, a truncation and a boundary."""
    steps = [
        ts.TimeStep(
            tf.constant(types),
            tf.constant([1.0, -2.0, 3.0, boundary]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            tf.constant([[x] for x in values]),
        )
        for types, values in (
            ([1, 1, 1, 2], [0.5, 1.0, -1.0, boundary]),
            ([1, 2, 2, 0], [2.0, 3.0, -2.0, boundary]),
        )
    ]
    actions = tf.constant([[0.5], [-0.5], [0.25], [0.9]])
    return trajectory.Transition(steps[0], policy_step.PolicyStep(actions), steps[1])


def expected_errors(enable_td3):
    """Targets minus values, for the parabolas of the next test."""
    reward = np.array([1.0, -2.0, 3.0])
    discount = GAMMA * np.array([1.0, 0.0, 1.0])
    state, after = np.array([0.5, 1.0, -1.0]), np.array([2.0, 3.0, -2.0])
    action = np.array([0.5, -0.5, 0.25])
    values = state - (action - 0.25) ** 2
    # The target network's best action is -0.5, at its peak.
    if enable_td3:
        first = 0.5 * after - (-0.5 - 0.0) ** 2
        second = 2.0 * after - (-0.5 + 1.0) ** 2
        return reward + discount * np.minimum(first, second) - values
    return reward + discount * 3.0 * after - values


@pytest.mark.parametrize("enable_td3", [True, False])
def test_the_loss_is_that_of_the_least_delayed_value_of_the_best_action(enable_td3):
    targets = {"target_q_network": Parabola(3.0, -0.5)}
    if enable_td3:
        targets["target_q_network_delayed"] = Parabola(0.5, 0.0)
        targets["target_q_network_delayed_2"] = Parabola(2.0, -1.0)
    agent = make(enable_td3=enable_td3, num_iter_cem=12, **targets)
    errors = np.append(expected_errors(enable_td3), 0.0)
    huber = np.where(np.abs(errors) < 1, errors**2 / 2, np.abs(errors) - 0.5)
    info = agent.loss(transitions())
    np.testing.assert_allclose(info.extra.td_error, errors, atol=0.01)
    np.testing.assert_allclose(info.extra.td_loss, huber, atol=0.01)
    np.testing.assert_allclose(info.loss, huber.mean(), atol=0.01)


def test_a_boundary_changes_nothing_whatever_its_numbers_are():
    changed = []
    for boundary in (5.0, -7.0):
        agent = make(reward_scale_factor=0.5)
        agent.initialize()
        agent.train(transitions(boundary))
        changed.append([v.numpy() for v in agent.variables])
    for one, other in zip(*changed, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_delayed_network_is_a_copy_of_what_its_source_was():
    agent = make(target_update_tau=1.0, delayed_target_update_period=2)
    agent.initialize()
    pairs = agent._target_pairs
    history = []
    for _ in range(4):
        agent.train(transitions())
        networks_ = [pairs[0][0], *(target for _, target in pairs)]
        history.append([float(each.variables[0]) for each in networks_])
    start = 1.0
    q = [row[0] for row in history]
    assert [row[1] for row in history] == q
    # Every second update, before the target network moves: its weight of the update
    # before, and what the first delayed network had until then.
    assert [row[2] for row in history] == [start, q[0], q[0], q[2]]
    assert [row[3] for row in history] == [start, start, start, q[0]]


def test_values_in_the_policy_info_are_the_targets():
    agent = make(in_graph_bellman_update=False)
    frames = trajectory.mid(
        observation=tf.constant([[[0.5]], [[1.0]]]),
        action=tf.constant([[[0.25]], [[0.25]]]),
        policy_info={"target_q": tf.constant([[4.0], [7.0]])},
        reward=tf.constant([[1.0], [2.0]]),
        discount=tf.constant([[1.0], [0.0]]),
    )
    errors = agent.loss(frames).extra.td_error
    np.testing.assert_allclose(errors, [1 + GAMMA * 4 - 0.5, 2 - 1.0], rtol=1e-6)
    step = ts.restart(tf.constant([[2.0]]), batch_size=1)
    value = agent.policy.action(step).info["target_q"]
    np.testing.assert_allclose(value, [2.0], atol=0.01)


def test_auxiliary_losses_are_added():
    def penalty(network, transition):
        return tf.abs(transition.time_step.observation[:, 0]), 0.5

    weights = tf.constant([1.0, 2.0, 0.0, 0.0])
    plain, more = (
        make(auxiliary_loss_fns=each).loss(transitions(), weights).loss
        for each in (None, [penalty])
    )
    np.testing.assert_allclose(more - plain, (0.5 + 2 * 1.0) / 4 + 0.5, rtol=1e-5)


@pytest.mark.slow
def test_compiled_updates_are_the_plain_ones():
    weights = []
    for compiled in (False, True):
        agent = make(target_update_tau=0.5, delayed_target_update_period=2)
        agent.initialize()
        train = tf.function(agent.train, jit_compile=compiled)
        for _ in range(3):
            train(transitions())
        weights.append([v.numpy() for v in agent.variables])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"enable_td3": False, "target_q_network_delayed": Parabola(1.0, 0.0)},
            "enable_td3=False",
        ),
        ({"delayed_target_update_period": 0}, "target_update_period: expected"),
        ({"num_elites_cem": 0}, "num_elites: expected"),
    ],
)
def test_what_it_cannot_do_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_recurrent_networks_are_refused():
    network = networks.CriticRnnNetwork((OBSERVATION, ACTION), lstm_size=(4,))
    with pytest.raises(NotImplementedError, match="QT-Opt expects one without a state"):
        make(network)


@pytest.mark.slow
def test_it_solves_a_bandit():
    """The reward is the closeness to half the observation."""
    network = networks.CriticNetwork(
        (OBSERVATION, ACTION), joint_fc_layer_params=(32, 32), seed=1
    )
    agent = make(network, keras.optimizers.Adam(0.01))
    agent.initialize()
    train = tf.function(agent.train, jit_compile=True)
    rng = np.random.default_rng(0)
    for _ in range(150):
        observed = rng.uniform(-1, 1, [64, 1]).astype(np.float32)
        action = rng.uniform(-1, 1, [64, 1]).astype(np.float32)
        train(
            trajectory.Transition(
                ts.restart(tf.constant(observed), 64),
                policy_step.PolicyStep(tf.constant(action)),
                ts.termination(
                    tf.constant(observed), -np.square(action - observed / 2)[:, 0]
                ),
            )
        )
    states = np.linspace(-0.8, 0.8, 5, dtype=np.float32)[:, np.newaxis]
    actions = agent.policy.action(ts.restart(tf.constant(states), 5)).action
    np.testing.assert_allclose(actions, states / 2, atol=0.15)
