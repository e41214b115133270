"""`StateDependentNoiseProjectionNetwork` against NumPy and TFP."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.distributions import StateDependentNormal, sampling, squash_to_spec
from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    StateDependentNoiseProjectionNetwork,
)
from tfrl.specs import tensor_spec
from tfrl.utils import variables

Spec = tensor_spec.BoundedTensorSpec
SPEC = Spec([2], tf.float32, [-1, 0], [1, 4])
X = np.random.default_rng(0).normal(size=[5, 3]).astype(np.float32)
LOG_STD = np.array([[-1.0, 0.5], [0.0, -2.0], [-0.5, 0.3]], np.float32)


@pytest.fixture(scope="module")
def net():
    """A network whose deviations are given."""
    net = StateDependentNoiseProjectionNetwork(SPEC, seed=1)
    net(X)
    with_log_std(net)
    return net


def with_log_std(net):
    (log_std,) = (v for v in net.variables if v.name == "log_std")
    np.testing.assert_array_equal(log_std, np.full([3, 2], -3.0))
    log_std.assign(LOG_STD)
    return log_std


def test_the_variance_is_that_of_noise_times_features(net):
    distribution, state = net(X)
    normal = distribution.input_distribution
    np.testing.assert_allclose(
        normal.variance(), X**2 @ np.exp(LOG_STD) ** 2, rtol=1e-4, atol=1e-5
    )
    kernel, bias = (v.numpy() for v in net.variables if v.name != "log_std")
    means = X @ kernel + bias
    np.testing.assert_allclose(normal.mean(), means, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        distribution.mode(), [0, 2] + np.tanh(means) * [1, 2], rtol=1e-4, atol=1e-5
    )
    assert state == ()


def test_perturbed_actions_have_that_variance(net):
    normal = net(np.tile(X, [10_000, 1]))[0].input_distribution
    noise = np.random.default_rng(1).normal(size=[50_000, 3, 2]).astype(np.float32)
    drawn = normal.perturb(noise).numpy().reshape([10_000, 5, 2])
    np.testing.assert_allclose(drawn.std(axis=0), normal.stddev()[:5], rtol=0.03)


def test_densities_of_samples_are_tfps(net):
    distribution, _ = net(X)
    action, log_prob = sampling.sample_and_log_prob(distribution, tf.constant([1, 2]))
    np.testing.assert_allclose(log_prob, distribution.log_prob(action), rtol=1e-3)


def test_without_features_the_density_is_finite(net):
    distribution, _ = net(np.zeros_like(X))
    assert np.all(np.isfinite(distribution.log_prob(distribution.mode())))


@pytest.mark.parametrize("learn_features", [False, True])
def test_gradients_through_the_variance(learn_features):
    """They are 2 z_i^2 std_ij^2 for log_std_ij, and 2 z_i std_ij^2 for z_i."""
    net = StateDependentNoiseProjectionNetwork(
        SPEC, learn_features=learn_features, scale_distribution=False, seed=0
    )
    inputs = tf.constant(X)
    net(inputs)
    log_std = variables.as_tf_variable(with_log_std(net))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        distribution, _ = net(inputs)
        total = tf.reduce_sum(distribution.variance())
    assert type(distribution) is StateDependentNormal
    of_std, of_inputs = tape.gradient(total, [log_std, inputs])
    squared_std = np.exp(LOG_STD) ** 2
    np.testing.assert_allclose(
        of_std, 2 * np.sum(X**2, axis=0)[:, np.newaxis] * squared_std, rtol=1e-4
    )
    if learn_features:
        np.testing.assert_allclose(of_inputs, 2 * X * squared_std.sum(1), rtol=1e-4)
    else:
        assert of_inputs is None


@pytest.mark.parametrize("shape", [(1,), (2, 3)])
def test_shapes_of_samples(shape):
    net = StateDependentNoiseProjectionNetwork(Spec(shape, tf.float32, -1, 1))
    distribution, _ = net(tf.ones([5, 7, 3]), outer_rank=2)
    samples = sampling.sample(distribution, tf.constant([1, 2]))
    assert samples.shape == (5, 7, *shape)
    noise = tf.ones([5, 7, *distribution.input_distribution.noise_shape])
    assert distribution.input_distribution.perturb(noise).shape == (5, 7, *shape)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            functools.partial(ActorDistributionNetwork, dtype="mixed_bfloat16"),
            marks=processors.multiplies_in_half_precision,
        ),
        functools.partial(ActorDistributionRnnNetwork, lstm_size=(4,)),
    ],
)
def test_projection_of_an_actor_network(make):
    observation = tf.TensorSpec([3])
    net = make(
        observation,
        SPEC,
        continuous_projection_net=StateDependentNoiseProjectionNetwork,
    )
    spec = net.create_variables()
    assert spec.sample_spec == tf.TensorSpec([2])
    distribution, _ = net(tf.ones([2, 3]))
    assert isinstance(distribution, squash_to_spec.SquashToSpecNormal)
    assert keras.backend.standardize_dtype(distribution.dtype) == "float32"


def test_wrong_arguments(net):
    with pytest.raises(ValueError, match="State Dependent Noise Projection network o"):
        StateDependentNoiseProjectionNetwork([SPEC] * 2)
    with pytest.raises(ValueError, match="expected at least one dimension"):
        StateDependentNoiseProjectionNetwork(Spec([], tf.float32, -1, 1))
    with pytest.raises(ValueError, match="Inputs to StateDependentNoiseProjectionNetw"):
        net(X.astype(np.float64))
    with pytest.raises(NotImplementedError, match="action mask"):
        net(X, mask=tf.ones([5, 1]))
