"""Discrete actions for native environments, against the continuous ones."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import native, suite_gym, wrappers
from tfrl.specs import tensor_spec


def test_a_bin_is_the_torque_at_its_place_between_the_bounds():
    continuous = native.load("Pendulum-v1", batch_size=5, seed=0)
    discrete = native.NativeEnvironment(
        native.discretize_actions(continuous.dynamics, 5), batch_size=5, seed=0
    )
    state = continuous.dynamics.initial(tf.random.uniform([5, 2], seed=1))
    continuous.reset_to(state)
    discrete.reset_to(state)
    expected = continuous.step(tf.constant([[-2.0], [-1.0], [0.0], [1.0], [2.0]]))
    found = discrete.step(tf.range(5))
    np.testing.assert_array_equal(found.observation, expected.observation)
    np.testing.assert_array_equal(found.reward, expected.reward)
    state = continuous.physical_state()
    np.testing.assert_array_equal(discrete.physical_state(), state)


def test_the_spec_is_that_of_the_wrapper_of_python_environments():
    dynamics = native.load("Pendulum-v1").dynamics
    wrapped = wrappers.ActionDiscretizeWrapper(suite_gym.load("Pendulum-v1"), 11)
    spec = native.discretize_actions(dynamics, 11).action_spec
    assert tensor_spec.to_array_spec(spec) == wrapped.action_spec()


def test_discrete_actions_are_an_error():
    dynamics = native.load("CartPole-v1").dynamics
    with pytest.raises(ValueError, match="leave it out if they are discrete"):
        native.discretize_actions(dynamics, 5)
