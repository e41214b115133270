"""Quantile networks."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.networks import quantile_q_network
from tfrl.specs import tensor_spec

SPEC = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
X = np.random.default_rng(0).normal(size=[5, 4]).astype("f4")


def test_quantile_network_has_quantiles_of_each_action():
    net = networks.QuantileQNetwork(SPEC, ACTION, 7, fc_layer_params=(6,), seed=1)
    assert net(X)[0].shape == (5, 3, 7)
    assert net.create_variables() == tf.TensorSpec([3, 7], tf.float32)
    with pytest.raises(ValueError, match="num_quantiles"):
        networks.QuantileQNetwork(SPEC, ACTION, 0)


def implicit(**kwargs):
    return networks.ImplicitQuantileNetwork(
        SPEC, ACTION, 4, fc_layer_params=(6,), num_cosines=5, seed=1, **kwargs
    )


def test_implicit_network_against_numpy():
    net = implicit(quantile_layer_params=(7,))
    fractions = np.random.default_rng(1).uniform(size=[5, 2]).astype("f4")
    outputs, _ = net(X, fractions=tf.constant(fractions))
    encoding, _ = net._encoder(X)
    cosines = np.cos(math.pi * np.arange(5) * fractions[..., np.newaxis])
    kernel, bias = (v.numpy() for v in net._product.trainable_variables)
    products = encoding.numpy()[:, None] * np.maximum(cosines @ kernel + bias, 0)
    (hidden,), (last,) = net._dense_layers, net._head._advantages
    products = np.maximum(products @ hidden.kernel.numpy() + hidden.bias.numpy(), 0)
    expected = products @ last.kernel.numpy() + last.bias.numpy()
    np.testing.assert_allclose(
        outputs, expected.transpose([0, 2, 1]), rtol=1e-4, atol=1e-6
    )


def test_implicit_network_takes_evenly_spaced_fractions_by_default():
    net = implicit()
    middles = tf.tile([[0.125, 0.375, 0.625, 0.875]], [5, 1])
    np.testing.assert_allclose(net(X)[0], net(X, fractions=middles)[0], rtol=1e-5)
    assert net.create_variables() == tf.TensorSpec([3, 4], tf.float32)


def test_implicit_network_takes_time_dimensions():
    net = implicit()
    steps = np.stack([X, -X], axis=1)
    outputs, _ = net(steps)
    assert outputs.shape == (5, 2, 3, 4)
    np.testing.assert_allclose(outputs[:, 1], net(-X)[0], rtol=1e-4, atol=1e-6)
    fractions = tf.random.stateless_uniform([5, 2, 3], [1, 2])
    np.testing.assert_allclose(
        net(steps, fractions=fractions)[0][:, 0],
        net(X, fractions=fractions[:, 0])[0],
        rtol=1e-4,
        atol=1e-6,
    )


def test_wrong_arguments():
    for name in ("num_quantiles", "num_cosines"):
        with pytest.raises(ValueError, match=name):
            networks.ImplicitQuantileNetwork(SPEC, ACTION, **{name: 0})


def test_cosine_features_by_hand():
    features = quantile_q_network.cosine_features(tf.constant([0.0, 0.5, 1.0]), 4)
    np.testing.assert_allclose(
        features, [[1, 1, 1, 1], [1, 0, -1, 0], [1, -1, 1, -1]], atol=1e-6
    )
