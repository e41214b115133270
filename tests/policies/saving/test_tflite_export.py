"""Saved policies as TensorFlow Lite models, run by its interpreter."""

import numpy as np
import pytest
import tensorflow as tf

from tests.policies import saved_elsewhere
from tfrl.networks import actor_distribution_network, q_network
from tfrl.policies import (
    actor_policy,
    greedy_policy,
    policy_saver,
    q_policy,
    temporal_action_smoothing,
)
from tfrl.policies.saving import tflite_export
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([4], tf.float32)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0)
TIME_STEP = ts.time_step_spec(OBSERVATION)
X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)


def make_q_policy():
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(8,), seed=0)
    return q_policy.QPolicy(TIME_STEP, DISCRETE, net)


def make_actor_policy():
    net = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(8,), seed=0
    )
    return actor_policy.ActorPolicy(TIME_STEP, CONTINUOUS, net)


def convert(policy, path, **kwargs):
    policy_saver.PolicySaver(policy).save(str(path))
    return tflite_export.convert(str(path), **kwargs)


def step(x):
    return ts.transition(tf.constant(x), tf.zeros([len(x)]))


@pytest.mark.parametrize(
    "make", [pytest.param(make_q_policy, marks=pytest.mark.slow), make_actor_policy]
)
def test_greedy_policies_act_alike_with_built_in_operations(make, tmp_path):
    policy = greedy_policy.GreedyPolicy(make())
    _interpreter, runner = saved_elsewhere.tflite_runner(convert(policy, tmp_path))
    expected = policy.action(step(X)).action
    one_by_one = [
        runner(**saved_elsewhere.tflite_inputs(X[i : i + 1]))["action"][0]
        for i in range(len(X))
    ]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-4, atol=1e-6)
    assert one_by_one[0].dtype == expected.dtype.as_numpy_dtype
    # All at once, too: the batch size is open.
    np.testing.assert_allclose(
        runner(**saved_elsewhere.tflite_inputs(X))["action"],
        expected,
        rtol=1e-4,
        atol=1e-6,
    )


@pytest.mark.slow
def test_a_state_goes_in_and_out(tmp_path):
    policy = greedy_policy.GreedyPolicy(
        temporal_action_smoothing.TemporalActionSmoothing(make_actor_policy(), 0.5)
    )
    _interpreter, runner = saved_elsewhere.tflite_runner(convert(policy, tmp_path))
    state, average = policy.get_initial_state(1), np.zeros((1, 2), np.float32)
    for row in X[:3, np.newaxis]:
        expected = policy.action(step(row), state)
        outputs = runner(**saved_elsewhere.tflite_inputs(row), **{"1/1": average})
        np.testing.assert_allclose(
            outputs["action"], expected.action, rtol=1e-4, atol=1e-6
        )
        state, average = expected.state, outputs["state/1"]


@pytest.mark.slow
def test_a_policy_that_draws_random_numbers_needs_tensorflows_operations(tmp_path):
    with pytest.raises(
        ValueError, match=r"operations that TensorFlow Lite lacks.*Gree"
    ):
        convert(make_q_policy(), tmp_path)
    model = tflite_export.convert(str(tmp_path), select_tf_ops=True)
    assert b"FlexStatelessRandomUniform" in model


def test_a_path_without_policy_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"found no SavedModel"):
        tflite_export.convert(str(tmp_path))
