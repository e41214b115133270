import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.sac import tanh_normal_projection_network
from tfrl.distributions import squash_to_spec
from tfrl.networks import actor_distribution_network
from tfrl.specs import tensor_spec

Tanh = tanh_normal_projection_network.TanhNormalProjectionNetwork
Spec = tensor_spec.BoundedTensorSpec
X = np.random.default_rng(0).normal(size=[5, 3]).astype(np.float32)


def test_means_and_deviations_are_two_halves_of_one_layer():
    net = Tanh(Spec([2], tf.float32, [-1, 0], [1, 4]), seed=1)
    distribution, state = net(X, 1)
    kernel, bias = (v.numpy() for v in net.variables)
    means, log_stds = np.split(X @ kernel + bias, 2, axis=-1)
    assert isinstance(distribution, squash_to_spec.SquashToSpecNormal)
    np.testing.assert_allclose(
        distribution.mode(), [0, 2] + np.tanh(means) * [1, 2], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        distribution.input_distribution.stddev(), np.exp(log_stds), rtol=1e-4
    )
    assert state == ()


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_shapes_of_samples(shape):
    net = Tanh(Spec(shape, tf.float32, -1, 1))
    distribution, _ = net(tf.ones([5, 7, 3]), outer_rank=2)
    samples = distribution.sample(seed=1)
    assert samples.shape == (5, 7, *shape)
    assert np.all(np.abs(samples) <= 1)


def test_transform_of_deviations():
    net = Tanh(Spec([1], tf.float32, -1, 1), std_transform=lambda x: 0 * x + 0.5)
    distribution, _ = net(X, 1)
    np.testing.assert_array_equal(
        distribution.input_distribution.stddev(), np.full([5, 1], 0.5)
    )


def test_projection_of_an_actor_network():
    spec = Spec([2], tf.float32, -1, 1)
    net = actor_distribution_network.ActorDistributionNetwork(
        tf.TensorSpec([3]), spec, continuous_projection_net=Tanh
    )
    assert net.create_variables().event_spec == tf.TensorSpec([2])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Tanh Normal Projection network only"):
        Tanh([Spec([1], tf.float32, -1, 1)] * 2)
    net = Tanh(Spec([1], tf.float32, -1, 1))
    with pytest.raises(ValueError, match="Inputs to TanhNormalProjectionNetwork must"):
        net(X.astype(np.float64), 1)
    with pytest.raises(NotImplementedError, match="action mask"):
        net(X, 1, mask=tf.ones([5, 1]))
