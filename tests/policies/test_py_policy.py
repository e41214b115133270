"""`PyPolicy`: specs and state of policies on arrays."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import py_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

STATE = {"h": array_spec.ArraySpec((2,), np.float32)}


class Constant(py_policy.PyPolicy):
    def __init__(self):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([1], tf.float32)),
            tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3),
            policy_state_spec=STATE,
        )

    def _action(self, time_step, policy_state, seed=None):
        return policy_step.PolicyStep(np.int32(2), policy_state, ())


def test_an_observation_alone_leads_to_predict_where_the_policy_reads_a_time_step():
    class Reading(Constant):
        def _action(self, time_step, policy_state, seed=None):
            return policy_step.PolicyStep(time_step.observation, policy_state, ())

    with pytest.raises(TypeError, match="expected a TimeStep, got ndarray; call"):
        Reading().action(np.zeros(1, np.float32))


def test_a_policy_that_reads_no_time_step_acts_on_anything():
    assert Constant().action(np.zeros(1, np.float32)).action == 2


def test_tensor_specs_become_array_specs():
    policy = Constant()
    assert policy.action_spec == array_spec.BoundedArraySpec((), np.int32, 0, 3)
    assert isinstance(policy.time_step_spec.observation, array_spec.ArraySpec)


def test_trajectory_spec_is_built_from_the_specs():
    spec = Constant().collect_data_spec
    assert isinstance(spec, trajectory.Trajectory)
    assert spec.action == Constant().action_spec


def test_the_initial_state_is_zeros_of_the_spec():
    policy = Constant()
    np.testing.assert_array_equal(policy.get_initial_state()["h"], np.zeros(2))
    assert policy.get_initial_state(3)["h"].shape == (3, 2)
    assert policy.get_initial_state(3)["h"].dtype == np.float32


def test_action_is_what_the_subclass_says():
    time_step = ts.restart(np.zeros(1, np.float32))
    assert Constant().action(time_step).action == 2


def test_a_subclass_need_not_take_a_seed():
    class Seedless(Constant):
        def _action(self, time_step, policy_state):
            return policy_step.PolicyStep(np.int32(3), policy_state, ())

    time_step = ts.restart(np.zeros(1, np.float32))
    assert Seedless().action(time_step).action == 3


def test_a_seed_reaches_the_subclass():
    class Echoing(Constant):
        def _action(self, time_step, policy_state, seed=None):
            return policy_step.PolicyStep(seed, policy_state, ())

    time_step = ts.restart(np.zeros(1, np.float32))
    assert Echoing().action(time_step, seed=7).action == 7
    assert Echoing().action(time_step).action is None


def test_a_time_step_of_tensors_is_refused_in_one_sentence():
    time_step = ts.restart(tf.zeros([1, 1]), batch_size=1)
    with pytest.raises(
        TypeError,
        match=r"time_step: Constant is a Python policy and expects NumPy arrays, got "
        r"tensors; pass .* or wrap the policy in tfrl.policies.tf_py_policy.TFPyPolicy",
    ):
        Constant().action(time_step)
