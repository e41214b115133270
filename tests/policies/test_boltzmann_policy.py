"""`BoltzmannPolicy`: logits divided by a temperature."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network
from tfrl.policies import boltzmann_policy, greedy_policy, q_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([3], tf.float32)
Q_VALUES = [[1.0, 3.0, 2.0]]


class Echo(network.Network):
    """Says that the value of each action is the observation's entry."""

    def call(self, observation):
        return observation, ()


def make(temperature, low=0, **kwargs):
    action = tensor_spec.BoundedTensorSpec([], tf.int32, low, low + 2)
    wrapped = q_policy.QPolicy(
        ts.time_step_spec(OBSERVATION),
        action,
        Echo(),
        validate_action_spec_and_network=not low,
    )
    return boltzmann_policy.BoltzmannPolicy(wrapped, temperature, **kwargs)


def step(batch=1):
    return ts.restart(tf.tile(Q_VALUES, [batch, 1]), batch_size=batch)


def test_logits_are_divided_by_the_temperature():
    logits = make(2.0).distribution(step()).action.logits
    np.testing.assert_array_equal(logits, [[0.5, 1.5, 1.0]])


def test_no_temperature_leaves_the_logits():
    logits = make(None).distribution(step()).action.logits
    np.testing.assert_array_equal(logits, Q_VALUES)


def test_temperature_may_be_a_callable_that_reads_a_variable():
    temperature = tf.Variable(1.0)
    policy = make(lambda: temperature)
    logits = tf.function(lambda t: policy.distribution(t).action.logits)
    np.testing.assert_array_equal(logits(step()), Q_VALUES)
    temperature.assign(0.5)
    np.testing.assert_array_equal(logits(step()), [[2.0, 6.0, 4.0]])


def test_temperature_may_be_a_schedule_of_a_step():
    counter = tf.Variable(0, dtype=tf.int64)
    decay = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    policy = make(decay, step=counter)
    logits = tf.function(lambda t: policy.distribution(t).action.logits)
    np.testing.assert_allclose(logits(step()), Q_VALUES, rtol=1e-6)
    counter.assign(1)
    np.testing.assert_allclose(logits(step()), [[2.0, 6.0, 4.0]], rtol=1e-6)
    with pytest.raises(ValueError, match=r"step: got None with .* as temperature"):
        make(decay)


def test_actions_follow_the_softmax():
    actions = make(1.0, seed=0).action(step(4000)).action.numpy()
    expected = np.exp(Q_VALUES[0]) / np.sum(np.exp(Q_VALUES[0]))
    observed = np.bincount(actions, minlength=3) / 4000
    np.testing.assert_allclose(observed, expected, atol=0.03)


def test_near_zero_it_is_greedy():
    assert set(make(1e-3).action(step(100)).action.numpy()) == {1}


def test_shifted_actions_are_softened_too():
    policy = make(2.0, low=5)
    distribution = policy.distribution(step()).action
    np.testing.assert_array_equal(distribution.mode(), [6])
    assert policy.action(step()).action.numpy()[0] in (5, 6, 7)


def test_the_greedy_action_does_not_depend_on_it():
    policy = greedy_policy.GreedyPolicy(make(100.0))
    np.testing.assert_array_equal(policy.action(step()).action, [1])


def test_a_temperature_that_is_not_positive_is_an_error():
    with pytest.raises(ValueError, match=r"temperature: .* got 0.*GreedyPolicy"):
        make(0)


def test_masked_actions_are_never_drawn_at_any_temperature():
    masked = {"q": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}
    wrapped = q_policy.QPolicy(
        ts.time_step_spec(masked),
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2),
        Echo(),
        observation_and_action_constraint_splitter=lambda o: (o["q"], o["mask"]),
    )
    observation = {
        "q": tf.tile(Q_VALUES, [3000, 1]),
        "mask": tf.tile([[1, 0, 1]], [3000, 1]),
    }
    time_step = ts.restart(observation, batch_size=3000)
    for temperature in (0.01, 1.0, 100.0):
        policy = boltzmann_policy.BoltzmannPolicy(wrapped, temperature, seed=0)
        actions = policy.action(time_step).action.numpy()
        # Of the valid actions 0 and 2 the second is better by 1.
        expected = 1.0 / (1.0 + np.exp(-1.0 / temperature))
        np.testing.assert_allclose(np.mean(actions == 2), expected, atol=0.03)
        assert 1 not in actions
