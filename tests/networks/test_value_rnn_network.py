import numpy as np
import tensorflow as tf

from tfrl.networks import ValueRnnNetwork

OBSERVATION = tf.TensorSpec([2], tf.float32)


def test_one_value_for_each_step():
    net = ValueRnnNetwork(OBSERVATION, lstm_size=(4,))
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    assert net(tf.zeros([5, 2]))[0].shape == [5]
    values, state = net(tf.zeros([5, 6, 2]), step_type=tf.ones([5, 6], tf.int32))
    assert values.shape == [5, 6]
    assert [s.shape for s in state] == [[5, 4], [5, 4]]


def test_the_value_remembers_until_the_episode_begins_anew():
    net = ValueRnnNetwork(OBSERVATION, lstm_size=(4,), seed=3)
    same = tf.ones([1, 4, 2])
    values = net(same, step_type=tf.constant([[0, 1, 2, 0]]))[0][0].numpy()
    assert len(set(values[:3])) == 3
    np.testing.assert_allclose(values[3], values[0], rtol=1e-6)
