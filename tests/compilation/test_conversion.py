"""AutoGraph converts users' functions, and leaves most of the package as it is."""

import inspect
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.environments import py_environment, tf_py_environment
from tfrl.networks import sequential
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


class DoublesGreatLosses(dqn_agent.DqnAgent):
    def _loss(self, experience, *args, **kwargs):
        info = super()._loss(experience, *args, **kwargs)
        loss = info.loss
        if loss > 20.0:
            loss = 2.0 * loss
        return info._replace(loss=loss)


def squares_of_great_errors(targets, values):
    errors = tf.square(targets - values)
    if tf.reduce_max(errors) < 2.0:
        errors = tf.zeros_like(errors)
    return errors


@pytest.fixture(scope="module")
def train():
    """A traced update of an agent whose Q-values are zero."""
    agent = DoublesGreatLosses(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        q_network=sequential.Sequential(
            [keras.layers.Dense(2, kernel_initializer="zeros")], input_spec=OBSERVATION
        ),
        optimizer=keras.optimizers.SGD(1e-9),
        td_errors_loss_fn=squares_of_great_errors,
    )
    return tf.function(agent.train)


def experience(reward):
    """One transition whose target is its reward."""
    return trajectory.Trajectory(
        step_type=tf.constant([[0, 1]]),
        observation=tf.ones([1, 2, 2]),
        action=tf.constant([[0, 1]]),
        policy_info=(),
        next_step_type=tf.constant([[1, 1]]),
        reward=tf.constant([[reward, 0.0]]),
        discount=tf.zeros([1, 2]),
    )


@pytest.mark.parametrize(
    ("reward", "loss"), [(1.0, 0.0), (2.0, 4.0), (5.0, 2.0 * 25.0)]
)
def test_a_users_subclass_and_loss_branch_on_tensors(train, reward, loss):
    np.testing.assert_allclose(train(experience(reward)).loss, loss, rtol=1e-5)


def test_functions_that_call_nothing_of_users_are_not_converted(train):
    without_time = tf.nest.map_structure(lambda x: x[:, 0], experience(1.0))
    with pytest.raises(ValueError, match="in user code") as error:
        train(without_time)
    # One star marks the lines of converted functions.
    frames = re.findall(r'/(\w+\.py)", line \d+, in \w+ *(\**)', str(error.value))
    converted = {name for name, stars in frames if stars == "*"}
    plain = {name for name, stars in frames if stars != "*"}
    assert {"test_conversion.py", "dqn_agent.py"} <= converted
    assert "data_converter.py" in plain - converted


class NotesItsCallers(py_environment.PyEnvironment):
    """Notes the functions between the graph and itself."""

    def observation_spec(self):
        return array_spec.ArraySpec((), np.float32)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def _reset(self):
        return ts.restart(np.float32(0.0))

    def _step(self, action):
        self.files = [frame.filename for frame in inspect.stack()]
        return ts.transition(np.float32(0.0), 1.0)


def test_a_python_environment_is_not_converted():
    python = NotesItsCallers()
    environment = tf_py_environment.TFPyEnvironment(python)
    environment.reset()
    tf.function(environment.step)(tf.constant([1]))
    assert any(file.endswith("py_environment.py") for file in python.files)
    assert not any("autograph" in file for file in python.files)
