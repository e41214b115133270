"""Numbers of an agent's training, against NumPy and hand-made networks."""

import keras
import numpy as np
import tensorflow as tf

from tfrl.agents import measures
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory


def _layers():
    """Returns layers of 4 relu units, two of them dead, and of 2 tanh units."""
    first = keras.layers.Dense(4, activation="relu")
    second = keras.layers.Dense(2, activation="tanh")
    model = keras.Sequential([keras.Input((1,)), first, second, keras.layers.Dense(1)])
    first.set_weights([np.ones((1, 4)), np.array([0.0, 1.0, -9.0, -9.0])])
    second.set_weights([np.ones((4, 2)), np.zeros(2)])
    return model, first


def test_dormant_units_are_counted_in_the_layers_with_activations():
    model, first = _layers()
    activation = first.activation

    @tf.function
    def measure(inputs):
        units = measures.Units()
        with units.recorded([model]):
            model(inputs)
        return units.dormant()

    found = measure(tf.constant([[1.0], [2.0]]))
    np.testing.assert_allclose(found["dormant_units"], 2 / 6)
    np.testing.assert_allclose(found["dormant_layer"], 2 / 4)
    assert first.activation is activation


def test_a_unit_lives_that_is_active_in_any_call():
    model, _ = _layers()
    units = measures.Units()
    with units.recorded([model]):
        model(tf.constant([[1.0]]))
        model(tf.constant([[20.0]]))
    assert float(units.dormant()["dormant_units"]) == 0.0


def test_without_hidden_units_there_is_no_number():
    units = measures.Units()
    with units.recorded([keras.layers.Dense(2)]):
        pass
    assert units.dormant() == {}


def _frames(observation, action, reward):
    first = tf.ones([1, 3], tf.int32)
    return trajectory.Trajectory(
        step_type=first,
        observation=tf.constant(observation, tf.float32),
        action=tf.constant(action, tf.float32),
        policy_info=(),
        next_step_type=first,
        reward=tf.constant(reward, tf.float32),
        discount=tf.ones([1, 3]),
    )


def test_sizes_and_bounds_are_those_of_numpy():
    observation = np.array([[[1.0, 30.0], [2.0, 40.0], [3.0, 0.0]]])
    reward = np.array([[3.0, 0.0, 4.0]])
    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
    # The first dimension is at a bound once each, the second twice at its lower one.
    action = np.array([[[-2.0, 0.0], [2.0, 0.0], [0.0, 0.5]]])
    found = measures.of_experience(_frames(observation, action, reward), spec, 0.1)
    np.testing.assert_allclose(
        found["observation_size"], np.sqrt((900 + 1600) / 3), rtol=1e-6
    )
    np.testing.assert_allclose(found["reward_size"], 0.1 * np.sqrt(25 / 3), rtol=1e-6)
    np.testing.assert_allclose(found["actions_at_bound"], 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(found["actions_reach"], 1.0)


def test_the_reach_is_that_of_the_dimension_that_spans_most_of_its_range():
    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
    action = tf.constant([[[-1.0, 0.2], [1.0, 0.3], [2.0, 9.0]]])
    counts = tf.constant([[1.0, 1.0, 0.0]])  # The last is at a boundary.
    np.testing.assert_allclose(
        measures.of_actions(action, spec, counts)["actions_reach"], 0.5
    )


def test_other_experience_has_no_numbers():
    assert measures.of_experience((tf.zeros([2]),), None, 1.0) == {}
