import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import embedding
from tfrl.networks import sequential

OAR = collections.namedtuple("OAR", ["observation", "action", "reward"])
OBSERVATION = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
EXPECTED = [[2, 4, 0, 1, 0, np.tanh(0.5)], [6, 8, 1, 0, 0, -1]]


def layer():
    return embedding.OAREmbedding(keras.layers.Rescaling(2.0), num_actions=3)


@pytest.mark.parametrize("shape", [[2], [2, 1]])
def test_embedding_one_hot_and_squashed_reward_are_joined(shape):
    reward = tf.reshape([0.5, -30.0], shape)
    inputs = OAR(tf.constant(OBSERVATION), tf.constant([1, 0]), reward)
    np.testing.assert_allclose(layer()(inputs), EXPECTED, rtol=1e-6)
    np.testing.assert_allclose(layer()(inputs._asdict()), EXPECTED, rtol=1e-6)


def test_sequences_are_embedded_step_by_step():
    spec = OAR(tf.TensorSpec([2]), tf.TensorSpec([], tf.int32), tf.TensorSpec([]))
    network = sequential.Sequential([layer()], spec)
    inputs = OAR(OBSERVATION[np.newaxis], [[1, 0]], [[0.5, -30.0]])
    inputs = tf.nest.map_structure(tf.convert_to_tensor, OAR(*map(np.array, inputs)))
    inputs = inputs._replace(
        action=tf.cast(inputs.action, tf.int32),
        reward=tf.cast(inputs.reward, tf.float32),
    )
    np.testing.assert_allclose(network(inputs)[0], [EXPECTED], rtol=1e-6)
