import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import value_network

OBSERVATION = tf.TensorSpec([3], tf.float32)


def test_value_is_that_of_the_weights():
    net = value_network.ValueNetwork(OBSERVATION, fc_layer_params=(4,), seed=1)
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    w1, b1, w2, b2 = (v.numpy() for v in net.variables)
    x = np.random.default_rng(0).normal(size=[6, 3]).astype(np.float32)
    expected = (np.maximum(x @ w1 + b1, 0) @ w2 + b2)[:, 0]
    np.testing.assert_allclose(net(x)[0], expected, rtol=1e-5, atol=1e-6)


def test_defaults():
    net = value_network.ValueNetwork(OBSERVATION)
    net.create_variables()
    shapes = [tuple(v.shape) for v in net.variables]
    assert shapes == [(3, 75), (75,), (75, 40), (40,), (40, 1), (1,)]
    assert np.abs(net.variables[0].numpy()).max() <= np.sqrt(6 / 78)
    assert np.abs(net.variables[-2].numpy()).max() <= 0.03
    np.testing.assert_array_equal(net.variables[-1], [0.0])


@pytest.mark.parametrize("signature", [[2, 5, 3], [None, None, 3]])
def test_sequences_give_one_value_a_step(signature):
    net = value_network.ValueNetwork(OBSERVATION, seed=1)
    function = tf.function(
        lambda x: net(x)[0], input_signature=[tf.TensorSpec(signature)]
    )
    x = tf.random.stateless_normal([2, 5, 3], [1, 2])
    values = function(x)
    assert values.shape == (2, 5)
    np.testing.assert_allclose(values[:, 3], net(x[:, 3])[0], rtol=1e-5, atol=1e-6)
