import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import QRnnNetwork
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


def test_outputs_follow_the_inputs_with_one_value_an_action():
    net = QRnnNetwork(OBSERVATION, ACTION, lstm_size=(4,))
    assert net.create_variables() == tf.TensorSpec([3], tf.float32)
    assert net(tf.zeros([5, 2]))[0].shape == [5, 3]
    values, state = net(tf.zeros([5, 6, 2]), step_type=tf.ones([5, 6], tf.int32))
    assert values.shape == [5, 6, 3]
    assert [s.shape for s in state] == [[5, 4], [5, 4]]


def test_the_last_layer_begins_small_and_has_no_activation():
    net = QRnnNetwork(OBSERVATION, ACTION, lstm_size=(4,), seed=0)
    net.create_variables()
    kernel, bias = net.trainable_variables[-2:]
    assert np.abs(kernel).max() <= 0.03
    np.testing.assert_allclose(bias, [-0.2] * 3, rtol=1e-6)
    np.testing.assert_array_less(net(tf.zeros([1, 2]))[0], 0)


def test_two_actions_are_refused():
    with pytest.raises(ValueError, match="single action"):
        QRnnNetwork(OBSERVATION, [ACTION, ACTION], lstm_size=(4,))
