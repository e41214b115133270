"""`PyTFEagerPolicy`: arrays in, arrays out."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.drivers import dynamic_step_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.policies import py_tf_eager_policy, random_tf_policy, tf_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

ACTION = {"a": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 9)}


class Summing(tf_policy.TFPolicy):
    """Acts with the number of steps since FIRST; its info is the observation."""

    def __init__(self):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([2], tf.float32)),
            ACTION,
            policy_state_spec=tf.TensorSpec([], tf.int32),
            info_spec=tf.TensorSpec([2], tf.float32),
        )
        self.num_traces = 0
        self.weight = tf.Variable([1.0, 2.0])

    def _variables(self):
        return [self.weight]

    def _action(self, time_step, policy_state, seed):
        self.num_traces += 1
        return policy_step.PolicyStep(
            {"a": policy_state}, policy_state + 1, time_step.observation
        )


def first(batch=None):
    shape = (2,) if batch is None else (batch, 2)
    return ts.restart(np.ones(shape, np.float32), batch_size=batch)


def mid():
    return ts.transition(np.ones(2, np.float32), np.float32(0.0))


def test_specs_are_array_specs():
    policy = py_tf_eager_policy.PyTFEagerPolicy(Summing())
    assert policy.action_spec == {"a": array_spec.BoundedArraySpec((), np.int32, 0, 9)}
    assert isinstance(policy.time_step_spec.observation, array_spec.ArraySpec)


@pytest.mark.parametrize("use_tf_function", [False, True])
def test_unbatched_arrays_in_and_out(use_tf_function):
    policy = py_tf_eager_policy.PyTFEagerPolicy(Summing(), use_tf_function)
    state = policy.get_initial_state()
    actions = []
    for time_step in (first(), mid(), mid(), first()):
        step = policy.action(time_step, state)
        state = step.state
        actions.append(step.action["a"])
    assert isinstance(actions[0], np.ndarray | np.generic)
    assert actions == [0, 1, 2, 0]
    np.testing.assert_array_equal(step.info, [1.0, 1.0])


def test_batched_time_steps_are_passed_as_they_are():
    policy = py_tf_eager_policy.PyTFEagerPolicy(Summing(), batch_time_steps=False)
    step = policy.action(first(3), policy.get_initial_state(3))
    np.testing.assert_array_equal(step.action["a"], [0, 0, 0])


def test_a_tf_function_is_traced_once_with_and_once_without_seed():
    wrapped = Summing()
    policy = py_tf_eager_policy.PyTFEagerPolicy(wrapped, use_tf_function=True)
    state = policy.get_initial_state()
    for seed in range(3):
        policy.action(first(), state)
        policy.action(mid(), state, seed=seed)
    assert wrapped.num_traces == 2


def test_a_seed_reproduces_the_action():
    spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 10**6)
    wrapped = random_tf_policy.RandomTFPolicy(
        ts.time_step_spec(tf.TensorSpec([2], tf.float32)), spec
    )
    policy = py_tf_eager_policy.PyTFEagerPolicy(wrapped, use_tf_function=True)
    assert (
        policy.action(first(), seed=4).action == policy.action(first(), seed=4).action
    )
    assert (
        policy.action(first(), seed=4).action != policy.action(first(), seed=5).action
    )
    assert policy.action(first()).action != policy.action(first()).action


def test_tensors_have_a_batch_or_get_one():
    policy = py_tf_eager_policy.PyTFEagerPolicy(Summing())
    state = policy.get_initial_state()
    step = policy.action(ts.restart(tf.ones([2])), state)
    assert isinstance(step.action["a"], np.ndarray)
    assert step.action["a"].shape == ()
    batch = ts.transition(tf.ones([3, 2]), tf.zeros([3]))
    step = policy.action(batch, tf.constant([4, 5, 6]))
    np.testing.assert_array_equal(step.action["a"], [4, 5, 6])
    np.testing.assert_array_equal(step.state, [5, 6, 7])


@pytest.mark.parametrize("use_tf_function", [False, True])
def test_a_driver_of_tensors_collects_what_the_policy_on_tensors_does(use_tf_function):
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))
    specs = environment.time_step_spec(), environment.action_spec()
    policy = random_tf_policy.RandomTFPolicy(*specs)
    eager = py_tf_eager_policy.PyTFEagerPolicy(policy, use_tf_function=use_tf_function)
    actions = []
    for each in (policy, eager):
        seen = []
        driver = dynamic_step_driver.DynamicStepDriver(
            environment,
            each,
            [lambda x, to=seen: to.append(int(x.action[0]))],
            num_steps=8,
        )
        driver.run(environment.reset(), seed=3)
        actions.append(seen)
    assert len(actions[0]) >= 8
    assert actions[0] == actions[1]


def test_variables_are_arrays():
    (weight,) = py_tf_eager_policy.PyTFEagerPolicy(Summing()).variables()
    np.testing.assert_array_equal(weight, [1.0, 2.0])


def test_a_saved_policy_needs_specs(tmp_path):
    with pytest.raises(ValueError, match=r"load_specs_from_pbtxt=True"):
        py_tf_eager_policy.SavedModelPyTFEagerPolicy(str(tmp_path))


def test_a_directory_without_saved_policy_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"found no SavedModel in"):
        py_tf_eager_policy.SavedModelPyTFEagerPolicy(
            str(tmp_path), load_specs_from_pbtxt=True
        )
