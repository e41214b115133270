"""A policy that adds its state to the info of another."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import QNetwork, QRnnNetwork
from tfrl.policies import EpsilonGreedyPolicy, QPolicy, StateRecordingPolicy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
STEP = ts.transition(tf.constant([[0.5, 1.0], [2.0, -1.0]]), tf.zeros([2]))


def q_policy(network=QRnnNetwork, **kwargs):
    arguments = {"lstm_size": (3,)} if network is QRnnNetwork else {}
    return QPolicy(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        network(OBSERVATION, ACTION, **arguments, seed=0),
        **kwargs,
    )


def state(value):
    return [tf.fill([2, 3], value), tf.fill([2, 3], -value)]


def test_it_acts_like_the_policy_and_records_the_state():
    wrapped = q_policy()
    policy = StateRecordingPolicy(wrapped)
    plain = wrapped.action(STEP, state(0.5), seed=1)
    step = policy.action(STEP, state(0.5), seed=1)
    np.testing.assert_array_equal(step.action, plain.action)
    for ours, theirs in zip(step.state, plain.state, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(step.info["policy_state"], state(0.5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Tuples, since tf.data takes a list for one tensor.
    assert policy.info_spec == {"policy_state": tuple(wrapped.policy_state_spec)}
    assert policy.policy_state_spec == wrapped.policy_state_spec
    shown = policy.distribution(STEP, state(0.5))
    np.testing.assert_allclose(
        shown.action.logits, wrapped.distribution(STEP, state(0.5)).action.logits
    )
    np.testing.assert_array_equal(shown.info["policy_state"][0], state(0.5)[0])


def test_where_an_episode_begins_it_is_the_initial_state():
    step = STEP._replace(step_type=tf.constant([ts.StepType.FIRST, ts.StepType.MID]))
    info = StateRecordingPolicy(q_policy()).action(step, state(0.5), seed=1).info
    np.testing.assert_array_equal(info["policy_state"][0], [[0.0] * 3, [0.5] * 3])


def test_log_probabilities_stay():
    wrapped = EpsilonGreedyPolicy(q_policy(emit_log_probability=True), 0.5, seed=0)
    policy = StateRecordingPolicy(wrapped)
    expected = wrapped.action(STEP, state(0.5), seed=2).info.log_probability
    info = policy.action(STEP, state(0.5), seed=2).info
    np.testing.assert_array_equal(info["log_probability"], expected)
    assert set(info) == {"log_probability", "policy_state"}


def test_a_policy_without_a_state_is_refused():
    with pytest.raises(ValueError, match=r"policy: got .* which has no state"):
        StateRecordingPolicy(q_policy(QNetwork))
