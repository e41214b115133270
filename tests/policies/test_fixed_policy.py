"""`FixedPolicy`: the same action, whatever is observed."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import fixed_policy, greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tf.TensorSpec([2], tf.float32))
ACTION = {
    "d": tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3),
    "c": tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
}
FIXED = {"d": 2, "c": [0.5, -0.25]}


def step(batch):
    return ts.restart(tf.zeros([batch, 2]), batch_size=batch)


@pytest.mark.parametrize("batch", [1, 7])
def test_the_action_is_repeated_for_each_entry(batch):
    policy = fixed_policy.FixedPolicy(FIXED, TIME_STEP, ACTION)
    action = tf.function(policy.action)
    for _ in range(2):
        result = action(step(batch))
    np.testing.assert_array_equal(result.action["d"], [2] * batch)
    np.testing.assert_array_equal(result.action["c"], [[0.5, -0.25]] * batch)
    assert result.action["d"].dtype == tf.int64
    assert action.experimental_get_tracing_count() == 1
    assert policy.variables() == []


def test_the_log_probability_is_zero_unless_not_wanted():
    info = fixed_policy.FixedPolicy(FIXED, TIME_STEP, ACTION).action(step(3)).info
    np.testing.assert_array_equal(info.log_probability["d"], [0.0] * 3)
    policy = fixed_policy.FixedPolicy(
        FIXED, TIME_STEP, ACTION, emit_log_probability=False
    )
    assert policy.action(step(3)).info == ()


def test_the_distribution_is_certain_also_of_integers():
    policy = fixed_policy.FixedPolicy(FIXED, TIME_STEP, ACTION)
    distribution = policy.distribution(step(2)).action
    np.testing.assert_array_equal(distribution["c"].mode(), [[0.5, -0.25]] * 2)
    actions = tf.constant([2, 1], tf.int64)
    np.testing.assert_array_equal(distribution["d"].log_prob(actions), [0.0, -np.inf])


def test_the_greedy_action_is_the_fixed_one():
    policy = greedy_policy.GreedyPolicy(
        fixed_policy.FixedPolicy(FIXED, TIME_STEP, ACTION)
    )
    np.testing.assert_array_equal(policy.action(step(2)).action["d"], [2, 2])


def test_info_is_repeated_for_each_entry():
    policy = fixed_policy.FixedPolicy(
        FIXED,
        TIME_STEP,
        ACTION,
        policy_info={"id": 7},
        info_spec={"id": tf.TensorSpec([], tf.int32)},
    )
    info = policy.action(step(2)).info
    np.testing.assert_array_equal(info["id"], [7, 7])
    np.testing.assert_array_equal(info["log_probability"]["d"], [0.0, 0.0])


class Info(NamedTuple):
    log_probability: Any = ()
    extra: Any = ()


NUMBER = tf.TensorSpec([], tf.float32)


@pytest.mark.parametrize("emit", [True, False])
@pytest.mark.parametrize("method", ["action", "distribution"])
@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ((), Info(NUMBER)),
        (Info(extra=5.0), Info(NUMBER, NUMBER)),
        (Info(extra=tf.constant([5.0, 5.0])), Info(NUMBER, NUMBER)),
        ({}, {"log_probability": NUMBER}),
        ({"extra": 5.0}, {"log_probability": NUMBER, "extra": NUMBER}),
    ],
)
def test_a_log_probability_that_info_lacks_is_filled_in(given, spec, method, emit):
    action_spec = ACTION["c"]
    policy = fixed_policy.FixedPolicy(
        FIXED["c"],
        TIME_STEP,
        action_spec,
        emit_log_probability=emit,
        policy_info=given,
        info_spec=spec,
    )
    info = getattr(policy, method)(step(2)).info
    tf.nest.assert_same_structure(info, spec)
    as_dict = info if isinstance(info, dict) else info._asdict()
    np.testing.assert_array_equal(as_dict.pop("log_probability"), [0.0, 0.0])
    for extra in tf.nest.flatten(as_dict):
        np.testing.assert_array_equal(extra, [5.0, 5.0])


def test_a_given_log_probability_stays():
    policy = fixed_policy.FixedPolicy(
        FIXED["c"],
        TIME_STEP,
        ACTION["c"],
        emit_log_probability=False,
        policy_info=Info(tf.constant([-1.0, -2.0])),
        info_spec=Info(NUMBER),
    )
    info = policy.action(step(2)).info
    np.testing.assert_array_equal(info.log_probability, [-1.0, -2.0])


def test_an_action_of_another_shape_or_structure_is_an_error():
    with pytest.raises(ValueError, match=r"actions/c: got shape \(3,\), expected \(2"):
        fixed_policy.FixedPolicy({"d": 1, "c": [1.0] * 3}, TIME_STEP, ACTION)
    with pytest.raises(ValueError, match=r"actions: got .* expected the structure"):
        fixed_policy.FixedPolicy({"d": 1}, TIME_STEP, ACTION)


def test_a_fraction_is_no_integer():
    spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
    with pytest.raises(ValueError, match=r"actions: got 0\.7, expected numbers of"):
        fixed_policy.FixedPolicy(0.7, ts.time_step_spec(spec), spec)
