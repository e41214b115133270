"""Policies that act eagerly many times are traced, unless they run a user's Python."""

import copy
import gc
import warnings
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import q_network, sequential
from tfrl.policies import (
    epsilon_greedy_policy,
    greedy_policy,
    py_tf_eager_policy,
    q_policy,
    tf_policy,
)
from tfrl.policies.acting import traced_action
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([4], tf.float32)
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
MANY = 2 * traced_action._EAGER_CALLS


@pytest.fixture(scope="module")
def network():
    return q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=(8,), seed=1)


def make_policy(network, seed=3, epsilon=0.5):
    return epsilon_greedy_policy.EpsilonGreedyPolicy(
        q_policy.QPolicy(TIME_STEP, ACTION, network), epsilon, seed=seed
    )


def steps(batch_size=3, count=MANY):
    rng = np.random.default_rng(0)
    for _ in range(count):
        x = rng.normal(size=[batch_size, 4]).astype(np.float32)
        yield ts.restart(tf.constant(x), batch_size)


def traces(policy):
    function = policy._traced_action._function
    return function.experimental_get_tracing_count() if function else 0


def test_the_actions_are_those_of_an_untraced_policy(network):
    traced, untraced = make_policy(network), make_policy(network)
    for time_step in steps():
        expected = untraced._act(time_step, (), None)
        step = traced.action(time_step)
        np.testing.assert_array_equal(step.action, expected.action)
        assert step.state == expected.state == ()
    assert traces(traced) == 1


def test_a_seed_decides_the_traced_action(network):
    policy = make_policy(network, epsilon=1.0)
    (time_step,) = steps(batch_size=40, count=1)
    expected = policy._act(time_step, (), 7).action
    for _ in range(MANY):
        np.testing.assert_array_equal(policy.action(time_step, seed=7).action, expected)


def test_a_policy_that_acts_a_few_times_is_not_traced(network):
    policy = make_policy(network)
    for time_step in steps(count=traced_action._EAGER_CALLS):
        policy.action(time_step)
    assert traces(policy) == 0


def test_new_weights_count(network):
    policy = greedy_policy.GreedyPolicy(q_policy.QPolicy(TIME_STEP, ACTION, network))
    *_, time_step = [policy.action(s) and s for s in steps()]
    bias = network.trainable_variables[-1]
    before = bias.numpy()
    try:
        for action in range(3):
            bias.assign(100 * np.eye(3, dtype=np.float32)[action])
            np.testing.assert_array_equal(policy.action(time_step).action, [action] * 3)
    finally:
        bias.assign(before)
    assert traces(policy) == 1


def test_a_callable_epsilon_is_called_at_each_action(network):
    epsilons = []

    def epsilon():
        epsilons.append(0.5)
        return epsilons[-1]

    policy = make_policy(network, epsilon=epsilon)
    for time_step in steps():
        policy.action(time_step)
    assert len(epsilons) == MANY


def test_a_layer_of_the_users_runs_at_each_action():
    calls = []

    class Mine(keras.layers.Layer):
        def call(self, x):
            calls.append(x)
            return x

    mine = sequential.Sequential([Mine(), keras.layers.Dense(3)])
    policy = greedy_policy.GreedyPolicy(q_policy.QPolicy(TIME_STEP, ACTION, mine))
    calls.clear()
    for time_step in steps():
        policy.action(time_step)
    assert len(calls) == MANY


def test_a_subclass_of_the_users_runs_at_each_action(network):
    calls = []

    class Mine(q_policy.QPolicy):
        def _greedy_action(self, time_step, policy_state):
            calls.append(time_step)
            return super()._greedy_action(time_step, policy_state)

    policy = greedy_policy.GreedyPolicy(Mine(TIME_STEP, ACTION, network))
    for time_step in steps():
        policy.action(time_step)
    assert len(calls) == MANY


@pytest.mark.parametrize("is_pure", [False, True])
def test_a_subclass_says_whether_it_may_be_traced(is_pure):
    python_calls = []

    class Mine(tf_policy.TFPolicy):
        def _is_pure_tensorflow(self):
            return is_pure

        def _action(self, time_step, policy_state, seed):
            python_calls.append(seed)
            action = tf.argmax(time_step.observation, axis=-1, output_type=tf.int32)
            return policy_step.PolicyStep(tf.minimum(action, 2), policy_state, ())

    policy = Mine(TIME_STEP, ACTION)
    for time_step in steps():
        expected = np.minimum(np.argmax(time_step.observation, axis=-1), 2)
        np.testing.assert_array_equal(policy.action(time_step).action, expected)
    traced = traced_action._EAGER_CALLS + 1
    assert len(python_calls) == (traced if is_pure else MANY)


def test_a_policy_that_cannot_be_traced_says_so_once():
    class Mine(tf_policy.TFPolicy):
        def _is_pure_tensorflow(self):
            return True

        def _action(self, time_step, policy_state, seed):
            action = np.zeros(int(tf.reduce_sum(time_step.discount)), np.int32)
            return policy_step.PolicyStep(tf.constant(action), policy_state, ())

    policy = Mine(TIME_STEP, ACTION)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for time_step in steps():
            assert policy.action(time_step).action.shape == time_step.discount.shape
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).startswith("Mine.action: its trace failed, so")


def test_wrong_arguments_leave_the_trace_in_use(network):
    policy = make_policy(network)
    for time_step in steps():
        policy.action(time_step)
    before = traces(policy)
    with pytest.raises(TypeError, match="got dtype float64"):
        policy.action(ts.restart(tf.zeros([3, 4], tf.float64), 3))
    policy.action(time_step)
    assert policy._traced_action._num_calls > 0
    assert traces(policy) >= before


def test_running_functions_eagerly_runs_the_policy_eagerly(network):
    policy = make_policy(network)
    tf.config.run_functions_eagerly(True)
    try:
        for time_step in steps():
            policy.action(time_step)
    finally:
        tf.config.run_functions_eagerly(False)
    assert traces(policy) == 0


def test_what_does_not_fit_the_specs_is_told_as_before(network):
    policy = make_policy(network)
    for time_step in steps():
        policy.action(time_step)
    with pytest.raises(TypeError, match="got dtype float64, expected float32"):
        policy.action(ts.restart(tf.zeros([3, 4], tf.float64), 3))
    with pytest.raises(ValueError, match=r"got shape \(3, 5\), expected \(None, 4\)"):
        policy.action(ts.restart(tf.zeros([3, 5]), 3))


def test_policies_of_arrays_share_the_trace(network):
    policy = make_policy(network)
    time_step = ts.restart(np.zeros([4], np.float32))
    for _ in range(5):
        eager = py_tf_eager_policy.PyTFEagerPolicy(policy, use_tf_function=True)
        for _ in range(3):
            eager.action(time_step)
    assert traces(policy) == 1


def test_the_trace_keeps_no_policy_alive(network):
    policy = make_policy(network)
    for time_step in steps():
        policy.action(time_step)
    gone = weakref.ref(policy)
    del policy
    gc.collect()
    assert gone() is None


def test_a_copy_acts_by_its_own_trace(network):
    traced = traced_action.TracedAction()
    policies = [make_policy(network, epsilon=e) for e in (0.0, 1.0)]
    first = traced.function(policies[0])
    second = copy.copy(traced).function(policies[1])
    assert first is not second
