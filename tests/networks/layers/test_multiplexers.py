import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import sequential
from tfrl.networks.heads import distributional
from tfrl.networks.layers import continuous, multiplexers

OBSERVATION = np.arange(4, dtype=np.float32).reshape(2, 2)
ACTION = np.array([[10.0], [20.0]], np.float32)


def test_it_joins_observation_and_action():
    multiplexer = multiplexers.CriticMultiplexer()
    expected = [[0, 1, 10], [2, 3, 20]]
    np.testing.assert_array_equal(multiplexer(OBSERVATION, ACTION), expected)
    np.testing.assert_array_equal(multiplexer((OBSERVATION, ACTION)), expected)


def test_networks_transform_their_parts():
    multiplexer = multiplexers.CriticMultiplexer(
        critic_network=lambda joined: joined + 1,
        observation_network=sequential.Sequential([tf.square]),
        action_network=keras.layers.Rescaling(0.1),
    )
    np.testing.assert_allclose(
        multiplexer(OBSERVATION, ACTION), [[1, 2, 2], [5, 10, 3]], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_dtypes_are_brought_together(dtype):
    joined = multiplexers.CriticMultiplexer()(
        {"x": OBSERVATION.astype(dtype), "y": ACTION}, ACTION / 4
    )
    assert joined.dtype == tf.float32
    np.testing.assert_array_equal(joined, [[0, 1, 10, 2.5], [2, 3, 20, 5]])


@pytest.fixture(scope="module")
def critic():
    critic = sequential.Sequential(
        [
            multiplexers.CriticMultiplexer(
                observation_network=keras.layers.Dense(3, name="observe")
            ),
            continuous.LayerNormMLP([4], activate_final=True),
            distributional.DiscreteValuedHead(-1.0, 1.0, 5),
        ],
        (tf.TensorSpec([2]), tf.TensorSpec([1])),
        seed=0,
    )
    critic.create_variables()
    return critic


def test_a_copy_has_weights_of_its_own(critic):
    copied = critic.copy()
    copied.create_variables()
    assert len(copied.variables) == len(critic.variables) == 8
    assert not {id(v) for v in copied.variables} & {id(v) for v in critic.variables}


def test_it_can_be_saved_as_a_configuration(critic):
    config = keras.saving.serialize_keras_object(critic)
    loaded = keras.saving.deserialize_keras_object(config)
    inputs = (OBSERVATION, ACTION)
    loaded(inputs)
    for ours, theirs in zip(loaded.variables, critic.variables, strict=True):
        ours.assign(theirs)
    np.testing.assert_array_equal(loaded(inputs)[0].mean(), critic(inputs)[0].mean())


def test_weights_are_shared_with_the_networks_given():
    observe = keras.layers.Dense(3)
    first, second = (
        multiplexers.CriticMultiplexer(observation_network=observe) for _ in range(2)
    )
    np.testing.assert_array_equal(
        first(OBSERVATION, ACTION), second(OBSERVATION, ACTION)
    )
