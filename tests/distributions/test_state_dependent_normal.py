"""`StateDependentNormal` against its definition in NumPy, and TFP's normal."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import StateDependentNormal, squash_to_spec, utils
from tfrl.specs import tensor_spec

LOC = np.array([[0.5, -1.0], [0.0, 2.0], [1.0, 1.0]], np.float32)
FEATURES = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -3.0], [0.0, 0.0, 0.0]], np.float32)
STD = np.array([[0.1, 1.0], [0.2, 0.5], [0.3, 2.0]], np.float32)
SCALE = np.sqrt(FEATURES**2 @ STD**2 + 1e-6)


def make(copies=1, shape=(2,)):
    """Returns the distribution of three states, each of them several times."""
    loc, scale, features = (tf.tile(x, [copies, 1]) for x in (LOC, SCALE, FEATURES))
    loc, scale = (tf.reshape(x, [-1, *shape]) for x in (loc, scale))
    return StateDependentNormal(loc, scale, features, tf.constant(STD))


def test_noise_is_linear_in_the_features():
    noise = np.random.default_rng(0).normal(size=[3, 3, 2]).astype(np.float32)
    expected = [
        mean + z @ (STD * matrix)
        for mean, z, matrix in zip(LOC, FEATURES, noise, strict=True)
    ]
    distribution = make()
    np.testing.assert_allclose(distribution.perturb(noise), expected, rtol=1e-5)
    assert distribution.noise_shape == (3, 2)


def test_noise_has_the_deviations_of_the_distribution():
    noise = np.random.default_rng(1).normal(size=[60_000, 3, 2]).astype(np.float32)
    drawn = make(copies=20_000).perturb(noise).numpy().reshape([-1, 3, 2])
    np.testing.assert_allclose(drawn.std(axis=0), SCALE, rtol=0.03, atol=1e-3)
    np.testing.assert_allclose(drawn.mean(axis=0), LOC, atol=0.2)


def test_noise_of_actions_of_any_shape():
    noise = np.ones([3, 3, 2], np.float32)
    perturbed = make(shape=(1, 2)).perturb(noise)
    np.testing.assert_allclose(
        perturbed, make().perturb(noise)[:, tf.newaxis], rtol=1e-5, atol=1e-6
    )


def test_density_is_that_of_a_diagonal_normal():
    normal = tfp.distributions.MultivariateNormalDiag(LOC, SCALE)
    value = LOC + 0.3
    np.testing.assert_array_equal(make().log_prob(value), normal.log_prob(value))
    np.testing.assert_array_equal(make().entropy(), normal.entropy())


def test_recorded_parameters_give_the_density_back():
    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, -4.0, 4.0)
    squashed = squash_to_spec.SquashToSpecNormal(make(), spec)
    parameters = utils.get_parameters(squashed)
    recorded = utils.parameters_to_dict(parameters, tensors_only=True)
    assert set(recorded["distribution"]) == {"loc", "scale_diag"}
    again = utils.make_from_parameters(parameters)
    value = np.full([3, 2], 0.7, np.float32)
    np.testing.assert_array_equal(again.log_prob(value), squashed.log_prob(value))
    with pytest.raises(ValueError, match="was made without features"):
        again.input_distribution.perturb(value)
