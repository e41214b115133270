import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import CriticRnnNetwork
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1, 1)


def test_the_value_remembers_until_the_episode_begins_anew():
    net = CriticRnnNetwork(
        (OBSERVATION, ACTION), None, (3,), (5,), (6,), (4,), (7,), seed=3
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    inputs = tf.ones([1, 4, 2]), tf.ones([1, 4, 1])
    values = net(inputs, step_type=tf.constant([[0, 1, 2, 0]]))[0][0].numpy()
    assert len(set(values[:3])) == 3
    np.testing.assert_allclose(values[3], values[0], rtol=1e-6)


def test_defaults_and_initial_weights():
    net = CriticRnnNetwork((OBSERVATION, ACTION), lstm_size=(40,), seed=0)
    net.create_variables()
    kernels = [v for v in net.trainable_variables if len(v.shape) == 2]
    assert [tuple(v.shape) for v in kernels] == [
        (2, 200),
        (1, 200),
        (400, 100),
        (100, 160),
        (40, 160),
        (40, 200),
        (200, 100),
        (100, 1),
    ]
    assert 0.98 * 400**-0.5 < np.abs(kernels[2].numpy()).max() <= 400**-0.5
    assert np.abs(kernels[-1].numpy()).max() <= 0.003


def test_a_recurrent_layer_is_needed():
    with pytest.raises(ValueError, match="lstm_size"):
        CriticRnnNetwork((OBSERVATION, ACTION))


def test_path_of_tf_agents():
    from tfrl.agents.ddpg import critic_rnn_network

    assert critic_rnn_network.CriticRnnNetwork is CriticRnnNetwork
