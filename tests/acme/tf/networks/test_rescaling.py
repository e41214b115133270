import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.acme.tf.networks import rescaling
from tfrl.networks import sequential
from tfrl.specs import array_spec, bounded_tensor_spec

SPEC = array_spec.BoundedArraySpec([2], np.float32, [0.0, -2.0], [1.0, 4.0])
TENSOR_SPEC = bounded_tensor_spec.BoundedTensorSpec.from_spec(SPEC)


@pytest.mark.parametrize("spec", [SPEC, TENSOR_SPEC])
def test_tensors_reach_the_bounds(spec):
    inputs = tf.constant([[-9.0, -9.0], [0.0, 0.0], [9.0, 9.0]])
    bounds = [[0, -2], [0.5, 1], [1, 4]]
    np.testing.assert_allclose(rescaling.TanhToSpec(spec)(inputs), bounds, atol=1e-5)
    np.testing.assert_array_equal(rescaling.RescaleToSpec(spec)(inputs / 9), bounds)
    np.testing.assert_array_equal(
        rescaling.ClipToSpec(spec)(inputs), [[0, -2], [0, 0], [1, 4]]
    )
    np.testing.assert_allclose(
        rescaling.TanhToSpec(spec)(tf.constant([[0.3, -0.7]])),
        [[0.5 + 0.5 * np.tanh(0.3), 1 + 3 * np.tanh(-0.7)]],
        rtol=1e-6,
    )


def normals(scale):
    return [
        tfp.distributions.MultivariateNormalDiag([[0.3, -0.7]], [[scale] * 2]),
        tfp.distributions.Independent(
            tfp.distributions.Normal([[0.3, -0.7]], [[scale] * 2]), 1
        ),
    ]


@pytest.mark.parametrize("normal", normals(0.5))
def test_distributions_are_squashed(normal):
    squashed = rescaling.TanhToSpec(SPEC)(normal)
    action = np.array([[0.6, 0.1]])
    unit = (action - [0.5, 1]) / [0.5, 3]
    # The change of variables: the normal density over the slope of the map.
    slope = np.array([0.5, 3]) * (1 - np.square(unit))
    z = (np.arctanh(unit) - [0.3, -0.7]) / 0.5
    log_density = -0.5 * z * z - np.log(0.5 * np.sqrt(2 * np.pi)) - np.log(slope)
    np.testing.assert_allclose(
        squashed.log_prob(action.astype(np.float32)), log_density.sum(-1), rtol=1e-4
    )
    samples = squashed.sample(100, seed=1).numpy()
    assert np.all((samples >= SPEC.minimum) & (samples <= SPEC.maximum))


def test_mode_of_a_squashed_normal_is_the_squashed_mode():
    squashed = rescaling.TanhToSpec(SPEC)(normals(0.5)[0])
    expected = [[0.5 + 0.5 * np.tanh(0.3), 1 + 3 * np.tanh(-0.7)]]
    np.testing.assert_allclose(squashed.mode(), expected, rtol=1e-6)


def test_infinite_bounds_are_an_error():
    spec = array_spec.BoundedArraySpec([1], np.float32, 0, np.inf)
    for layer in (rescaling.RescaleToSpec, rescaling.TanhToSpec):
        with pytest.raises(ValueError, match="expected finite ones; use ClipToSpec"):
            layer(spec)
    np.testing.assert_array_equal(
        rescaling.ClipToSpec(spec)(tf.constant([[-1.0], [7.0]])), [[0], [7]]
    )


def test_a_network_with_it_can_be_copied():
    network = sequential.Sequential([tf.square, rescaling.TanhToSpec(SPEC)])
    inputs = tf.constant([[0.3, -0.7]])
    np.testing.assert_array_equal(network.copy()(inputs)[0], network(inputs)[0])
