"""Networks that see normalized observations."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl import networks
from tfrl.networks import NormalizedNetwork
from tfrl.specs import tensor_spec
from tfrl.utils import variables
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([2])
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
SEEN = tf.constant([[1000.0, 1.0], [1004.0, 3.0]])  # Means 1002, 2; deviations 2, 1.


@pytest.fixture
def normalizer():
    made = StreamingTensorNormalizer(OBSERVATION)
    made.update(SEEN)
    return made


def test_the_network_sees_normalized_observations(normalizer):
    inner = networks.QNetwork(OBSERVATION, ACTION, fc_layer_params=(3,), seed=0)
    outputs, _ = NormalizedNetwork(inner, normalizer)(SEEN)
    small = 1 / np.sqrt([4 + 1e-3, 1 + 1e-3]) * [[-2, -1], [2, 1]]
    expected, _ = inner(tf.constant(small, tf.float32))
    np.testing.assert_allclose(outputs, expected, rtol=1e-5)


def test_critics_see_actions_as_they_are(normalizer):
    class Inputs(networks.Network):
        def call(self, inputs):
            return inputs, ()

    pair = (OBSERVATION, tf.TensorSpec([1]))
    critic = NormalizedNetwork(Inputs(pair), normalizer, takes_action=True)
    actions = tf.constant([[900.0], [-900.0]])
    (observations, given), _ = critic((SEEN, actions))
    np.testing.assert_allclose(observations, [[-1, -1], [1, 1]], atol=1e-3)
    np.testing.assert_array_equal(given, actions)


def test_copies_have_weights_of_their_own_and_the_same_normalizer(normalizer):
    network = NormalizedNetwork(
        networks.QNetwork(OBSERVATION, ACTION, seed=0), normalizer, name="Online"
    )
    copied = network.copy(name="Target")
    for each in (network, copied):
        each.create_variables()
    assert (network.name, copied.name) == ("Online", "Target")
    assert copied.normalizer is normalizer
    shared = variables.extract_shared_variables(network.variables, copied.variables)
    assert {id(v) for v in shared} == {
        id(v) for v in variables.tracked_variables(normalizer)
    }
    assert not any(v.trainable for v in shared)
    before = [v.numpy() for v in shared]
    variables.soft_variables_update(network.variables, copied.variables, tau=0.5)
    for old, variable in zip(before, shared, strict=True):
        np.testing.assert_array_equal(old, variable)


def test_state_and_sequences_are_those_of_the_wrapped_network(normalizer):
    inner = networks.QRnnNetwork(
        OBSERVATION, ACTION, lstm_size=(3,), input_fc_layer_params=(), seed=0
    )
    network = NormalizedNetwork(inner, normalizer)
    assert network.create_variables() == inner.create_variables()
    assert network.state_spec == inner.state_spec
    sequence = tf.tile(SEEN[:, tf.newaxis], [1, 4, 1])
    outputs, state = network(sequence, step_type=tf.ones([2, 4], tf.int32))
    assert outputs.shape == [2, 4, 3]
    tf.nest.assert_same_structure(state, inner.state_spec)


@processors.multiplies_in_half_precision
def test_lower_precision_starts_behind_the_normalizer(normalizer):
    inner = networks.QNetwork(
        OBSERVATION, ACTION, fc_layer_params=(3,), seed=0, dtype="mixed_bfloat16"
    )
    # Differences of 2 from 1002 would be lost in bfloat16.
    outputs, _ = NormalizedNetwork(inner, normalizer)(SEEN)
    expected, _ = inner(tf.constant([[-1.0, -1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(outputs, expected, atol=2e-3)
    assert np.abs(outputs[0] - outputs[1]).max() > 0.02


def test_an_object_without_variables_can_normalize():
    class Halving:
        def normalize(self, observation):
            return observation / 2

    inner = networks.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    network = NormalizedNetwork(inner, Halving(), OBSERVATION)
    network.create_variables()
    outputs, _ = network(SEEN)
    np.testing.assert_array_equal(outputs, [[500.5], [503.5]])
    assert len(network.variables) == 2
