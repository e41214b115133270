import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import (
    random_tf_environment,
    test_envs,
    tf_environment,
    tf_py_environment,
    tf_wrappers,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class Recorder(tf_environment.TFEnvironment):
    """Remembers the actions that reach it."""

    def __init__(self, action_spec, batch_size):
        observation = tensor_spec.TensorSpec((), tf.float32)
        super().__init__(ts.time_step_spec(observation), action_spec, batch_size)
        self.actions = []

    def _current_time_step(self):
        return self._reset()

    def _reset(self):
        return ts.restart(tf.zeros([self.batch_size]), self.batch_size)

    def _step(self, action):
        self.actions.append(action)
        zeros = tf.zeros([self.batch_size])
        return ts.transition(zeros, zeros)


def choice(low=3, high=5, shape=(), dtype=tf.int32):
    return tensor_spec.BoundedTensorSpec(shape, dtype, low, high, name="choice")


def test_base_wrapper_hands_everything_on():
    inner = tf_py_environment.TFPyEnvironment(test_envs.CountingEnv(3))
    environment = tf_wrappers.TFEnvironmentBaseWrapper(inner)
    assert environment.wrapped_env() is inner
    assert environment.time_step_spec() == inner.time_step_spec()
    assert environment.observation_spec() == inner.observation_spec()
    assert environment.reward_spec() == inner.reward_spec()
    assert environment.action_spec() == inner.action_spec()
    assert (environment.batched, environment.batch_size) == (True, 1)
    assert environment.get_info() == [{}] or environment.get_info() == {}
    environment.reset()
    state = environment.get_state()
    assert environment.step([0]).observation == 1
    assert environment.current_time_step().observation == 1
    environment.set_state(state)
    assert environment.step([0]).observation == 1


def test_the_environments_own_error_comes_out_of_a_graph():
    class Broken(test_envs.CountingEnv):
        def _step(self, action):
            raise KeyError("worn out")

    environment = tf_wrappers.TFEnvironmentBaseWrapper(
        tf_py_environment.TFPyEnvironment(Broken())
    )
    environment.reset()
    step = tf.function(environment.step)
    with pytest.raises(KeyError, match="worn out"), environment.reraise():
        step(tf.constant([0], tf.int32))


@pytest.mark.parametrize("dtype", [tf.uint8, tf.int8, tf.int32, tf.int64])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_one_hot_means_the_largest_element(dtype, batch_size):
    inner = Recorder(choice(dtype=dtype), batch_size)
    environment = tf_wrappers.OneHotActionWrapper(inner)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((3,), dtype)
    assert (spec.minimum, spec.maximum, spec.name) == (0, 1, "one_hot_action_spec")
    indices = np.arange(batch_size) % 3
    environment.step(tf.one_hot(indices, 3, dtype=dtype))
    assert inner.actions[0].dtype == dtype
    np.testing.assert_array_equal(inner.actions[0], indices + 3)


def test_one_hot_leaves_floats_in_a_nest():
    force = tensor_spec.BoundedTensorSpec((2,), tf.float32, -1, 1)
    inner = Recorder({"choice": choice(0, 2, (2,)), "force": force}, 1)
    environment = tf_wrappers.OneHotActionWrapper(inner)
    assert environment.action_spec()["force"] == force
    environment.step(
        {"choice": [[[0, 0, 1], [0, 1, 0]]], "force": tf.constant([[0.5, 0.25]])}
    )
    assert inner.actions[0]["choice"].numpy().tolist() == [[2, 1]]
    assert inner.actions[0]["force"].numpy().tolist() == [[0.5, 0.25]]


def test_one_hot_works_in_a_graph():
    spec = ts.time_step_spec(tensor_spec.BoundedTensorSpec((), tf.float32, 0, 1))
    environment = tf_wrappers.OneHotActionWrapper(
        random_tf_environment.RandomTFEnvironment(spec, choice(), 2, seed=1)
    )
    step = tf.function(environment.step)
    assert step(tf.one_hot([0, 1], 3, dtype=tf.int32)).is_first().numpy().all()


def test_one_hot_refuses_other_specs_and_plain_actions():
    with pytest.raises(ValueError, match=r"action_spec/x: got .*at most one dimension"):
        tf_wrappers.OneHotActionWrapper(Recorder({"x": choice(0, 1, (2, 2))}, 1))
    environment = tf_wrappers.OneHotActionWrapper(Recorder(choice(), 2))
    with pytest.raises(
        ValueError, match=r"action: got shape \(2,\), expected \(2, 3\)"
    ):
        environment.step([0, 1])


def test_a_python_environment_is_an_error():
    with pytest.raises(
        TypeError, match="expected a TFEnvironment; wrap a PyEnvironment"
    ):
        tf_wrappers.TFEnvironmentBaseWrapper(test_envs.CountingEnv())
