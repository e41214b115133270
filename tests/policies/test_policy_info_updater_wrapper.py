"""`PolicyInfoUpdaterWrapper`: entries added to another policy's info."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    fixed_policy,
    greedy_policy,
    policy_info_updater_wrapper,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tf.TensorSpec([], tf.float32))
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
ID = {"id": tf.TensorSpec([], tf.int32)}


class Informed(tf_policy.TFPolicy):
    """A categorical policy that says what it observed."""

    def __init__(self):
        super().__init__(TIME_STEP, ACTION, info_spec={"x": TIME_STEP.observation})

    def _variables(self):
        return []

    def _distribution(self, time_step, policy_state):
        import tensorflow_probability as tfp

        logits = tf.one_hot(tf.ones_like(time_step.step_type), 4) * 1e9
        return policy_step.PolicyStep(
            tfp.distributions.Categorical(logits=logits),
            policy_state,
            {"x": time_step.observation},
        )

    def apply_value_network(self, observation):
        return observation + 1


def fixed():
    return fixed_policy.FixedPolicy(2, TIME_STEP, ACTION, emit_log_probability=False)


def step(batch=2):
    return ts.restart(tf.fill([batch], 0.5), batch_size=batch)


def identify(step_):
    return {"id": tf.fill([2], 7)}


def wrap(policy, info_spec=ID, updater_fn=identify):
    return policy_info_updater_wrapper.PolicyInfoUpdaterWrapper(
        policy, info_spec, updater_fn
    )


def test_entries_are_added_to_what_is_there():
    wrapped = Informed()
    policy = wrap(wrapped, {**ID, **wrapped.info_spec})
    for result in (
        policy.action(step()),
        policy.distribution(step()),
        greedy_policy.GreedyPolicy(policy).action(step()),
    ):
        np.testing.assert_array_equal(result.info["id"], [7, 7])
        np.testing.assert_array_equal(result.info["x"], [0.5, 0.5])
    np.testing.assert_array_equal(policy.action(step()).action, [1, 1])
    assert policy.info_spec == {**ID, **wrapped.info_spec}
    assert policy.collect_data_spec.policy_info == policy.info_spec


def test_the_updater_sees_the_action_and_runs_inside_one_trace():
    policy = wrap(fixed(), updater_fn=lambda s: {"id": s.action * 10})
    action = tf.function(policy.action)
    for _ in range(2):
        np.testing.assert_array_equal(action(step()).info["id"], [20, 20])
    assert action.experimental_get_tracing_count() == 1


def test_the_wrapped_policys_own_info_is_not_changed():
    wrapped = Informed()
    wrap(wrapped, {**ID, **wrapped.info_spec}).action(step())
    assert set(wrapped.action(step()).info) == {"x"}


def test_the_value_network_is_the_wrapped_policys():
    wrapped = Informed()
    assert wrap(wrapped, {**ID, **wrapped.info_spec}).apply_value_network(1) == 2


def test_other_entries_than_those_of_the_spec_are_an_error():
    with pytest.raises((ValueError, TypeError), match="policy_step_spec"):
        wrap(fixed(), updater_fn=lambda s: {"other": s.action}).action(step())


def test_an_entry_of_another_dtype_is_a_type_error():
    policy = wrap(fixed(), updater_fn=lambda s: {"id": tf.zeros([2])})
    with pytest.raises(TypeError, match=r"'id' has dtype float32, expected int32"):
        policy.action(step())


def test_info_that_is_no_dict_is_an_error():
    with pytest.raises(ValueError, match=r"^info_spec: .*expected a dict of specs"):
        wrap(fixed(), info_spec=[ID["id"]])
    with_namedtuple = fixed_policy.FixedPolicy(2, TIME_STEP, ACTION)
    with pytest.raises(ValueError, match=r"^policy\.info_spec: .*expected a dict"):
        wrap(with_namedtuple)
