"""Heads that return distributions, against TFP and by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import discrete_valued as distributions
from tfrl.networks import sequential
from tfrl.networks.heads import distributional

EMBEDDINGS = np.random.default_rng(0).normal(size=[4, 5]).astype(np.float32)


@pytest.mark.parametrize("is_independent", [False, True])
def test_standard_deviations_start_at_init_scale(is_independent):
    head = distributional.MultivariateNormalDiagHead(
        3, use_tfd_independent=is_independent
    )
    distribution = head(tf.zeros([2, 5]))
    np.testing.assert_allclose(distribution.stddev(), 0.3000010, rtol=1e-6)
    np.testing.assert_array_equal(distribution.mean(), np.zeros([2, 3]))
    # The density of three independent normal numbers at two standard deviations.
    one = -0.5 * 4 - np.log(0.300001) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(
        distribution.log_prob(0.600002 * tf.ones([2, 3])), 3 * one, rtol=1e-5
    )
    assert isinstance(distribution, tfp.distributions.Independent) == is_independent


def test_mean_and_scale_are_functions_of_the_embedding():
    head = distributional.MultivariateNormalDiagHead(
        2, init_scale=0.5, min_scale=0.1, tanh_mean=True, w_init="glorot_normal"
    )
    distribution = head(EMBEDDINGS)
    mean_kernel, _, scale_kernel, _ = head.get_weights()
    np.testing.assert_allclose(
        distribution.mean(), np.tanh(EMBEDDINGS @ mean_kernel), rtol=1e-5, atol=1e-6
    )
    softplus = np.log1p(np.exp(EMBEDDINGS @ scale_kernel))
    np.testing.assert_allclose(
        distribution.stddev(), softplus * 0.5 / np.log(2) + 0.1, rtol=1e-5
    )


def test_fixed_scale_has_no_variables():
    head = distributional.MultivariateNormalDiagHead(2, 0.7, fixed_scale=True)
    np.testing.assert_allclose(
        head(EMBEDDINGS).stddev(), np.full([4, 2], 0.7), rtol=1e-6
    )
    assert len(head.trainable_variables) == 2


def test_discrete_valued_head_spans_its_bounds():
    head = distributional.DiscreteValuedHead(-2.0, 2.0, 5)
    distribution = head(EMBEDDINGS)
    np.testing.assert_array_equal(distribution.values, [-2, -1, 0, 1, 2])
    kernel, bias = head.get_weights()
    logits = EMBEDDINGS @ kernel + bias
    np.testing.assert_allclose(distribution.logits, logits, rtol=1e-5, atol=1e-6)
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        distribution.mean(), probs @ [-2, -1, 0, 1, 2], rtol=1e-4, atol=1e-6
    )


def test_bounds_may_differ_between_values():
    head = distributional.DiscreteValuedHead([0.0, -10.0], [1.0, 10.0], 3)
    distribution = head(tf.zeros([4, 5]))
    np.testing.assert_array_equal(distribution.values, [[0, 0.5, 1], [-10, 0, 10]])
    assert (distribution.batch_shape, distribution.event_shape) == ([4], [2])
    np.testing.assert_allclose(distribution.mean(), [[0.5, 0.0]] * 4, atol=1e-6)


def test_bounds_broadcast():
    head = distributional.DiscreteValuedHead([[0.0], [-2.0]], [[1.0, 2.0, 4.0]], 3)
    assert head.values.shape == (2, 3, 3)
    np.testing.assert_array_equal(head.values[0, 2], [0, 2, 4])
    np.testing.assert_array_equal(head.values[1, 1], [-2, 0, 2])
    distribution = head(EMBEDDINGS)
    assert distribution.event_shape == [2, 3]
    np.testing.assert_allclose(
        distribution.mean(),
        tf.reduce_sum(tf.nn.softmax(distribution.logits) * head.values, axis=-1),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, [1.0, 0.0]), ([0.0] * 3, [1.0, 2.0])]
)
def test_bounds_that_do_not_fit_are_an_error(bounds):
    with pytest.raises(ValueError, match="vmin below vmax"):
        distributional.DiscreteValuedHead(*bounds, 3)
    with pytest.raises(ValueError, match=r"num_atoms: expected .* at least 2, got 1"):
        distributional.DiscreteValuedHead(0.0, 1.0, 1)


def test_categorical_head_has_the_shape_of_its_actions():
    head = distributional.CategoricalHead(4)
    distribution = head(EMBEDDINGS)
    kernel, _ = head.get_weights()
    np.testing.assert_allclose(
        distribution.logits, EMBEDDINGS @ kernel, rtol=1e-4, atol=1e-5
    )
    assert distributional.CategoricalHead([3, 4])(EMBEDDINGS).batch_shape == [4, 3]


def softplus(x):
    return np.log1p(np.exp(x))


def weights_of_mixture(head):
    """Returns the head's weights, after making them large enough to see."""
    rng = np.random.default_rng(1)
    head(EMBEDDINGS)
    head.set_weights([rng.normal(size=w.shape) for w in head.get_weights()])
    return head.get_weights()


def normal_density(x, loc, scale):
    return np.exp(-0.5 * np.square((x - loc) / scale)) / (scale * np.sqrt(2 * np.pi))


def test_univariate_mixtures_are_products_over_dimensions():
    head = distributional.UnivariateGaussianMixture(2, 3, init_scale=0.5)
    logits, loc, scale = (
        (EMBEDDINGS @ kernel + bias).reshape(4, 2, 3)
        for kernel, bias in np.array(weights_of_mixture(head), object).reshape(3, 2)
    )
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    x = np.array([0.3, -1.0])[:, np.newaxis]
    scale = softplus(scale) * 0.5 / np.log(2) + 1e-4
    density = (weights * normal_density(x, loc, scale)).sum(-1).prod(-1)
    distribution = head(EMBEDDINGS)
    assert distribution.event_shape == [2]
    np.testing.assert_allclose(distribution.prob(x[:, 0]), density, rtol=1e-3)
    np.testing.assert_allclose(
        distribution.mean(), (weights * loc).sum(-1), rtol=1e-4, atol=1e-4
    )


def test_multivariate_mixtures_share_their_components():
    head = distributional.MultivariateGaussianMixture(2, 3)
    flat = [
        EMBEDDINGS @ kernel + bias
        for kernel, bias in np.array(weights_of_mixture(head), object).reshape(3, 2)
    ]
    weights = np.exp(flat[0]) / np.exp(flat[0]).sum(-1, keepdims=True)
    loc, scale = flat[1].reshape(4, 3, 2), softplus(flat[2].reshape(4, 3, 2)) + 1e-4
    x = np.array([0.3, -1.0])
    density = (weights * normal_density(x, loc, scale).prod(-1)).sum(-1)
    np.testing.assert_allclose(head(EMBEDDINGS).prob(x), density, rtol=1e-3)


@pytest.mark.parametrize(
    "kind",
    [
        distributional.UnivariateGaussianMixture,
        distributional.MultivariateGaussianMixture,
    ],
)
def test_mixtures_start_at_init_scale_and_can_be_without_noise(kind):
    head = kind(2, init_scale=0.3)
    np.testing.assert_allclose(head(EMBEDDINGS).stddev(), 0.3, atol=0.02)
    quiet = head(EMBEDDINGS, low_noise_policy=True)
    samples = quiet.sample(seed=0)
    np.testing.assert_allclose(samples, quiet.mean(), atol=0.05)
    assert head(tf.zeros([2, 7, 5])).batch_shape == [2, 7]


@pytest.fixture(scope="module")
def critic():
    return sequential.Sequential(
        [keras.layers.Dense(8), distributional.DiscreteValuedHead(0.0, 4.0, 5)],
        tf.TensorSpec([5]),
        seed=0,
    )


def test_distribution_leaves_a_function(critic):
    function = tf.function(lambda x: critic(x)[0], autograph=False)
    distribution = function(EMBEDDINGS)
    assert isinstance(distribution, distributions.DiscreteValuedDistribution)
    np.testing.assert_allclose(
        distribution.mean(), critic(EMBEDDINGS)[0].mean(), rtol=1e-5
    )


def test_same_seed_same_weights(critic):
    other = sequential.Sequential(
        [keras.layers.Dense(8), distributional.DiscreteValuedHead(0.0, 4.0, 5)],
        tf.TensorSpec([5]),
        seed=0,
    )
    for network in (critic, other):
        network.create_variables()
    for ours, theirs in zip(critic.variables, other.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    copied = critic.copy()
    copied.create_variables()
    head = critic.layers[1].get_weights()[0]
    assert not np.array_equal(copied.layers[1].get_weights()[0], head)


@pytest.mark.parametrize("name", ["init_scale", "min_scale"])
@pytest.mark.parametrize("scale", [-1.0, float("nan")])
def test_a_scale_that_is_no_deviation_is_refused(name, scale):
    with pytest.raises(ValueError, match=f"^{name}: expected a finite number of at le"):
        distributional.MultivariateNormalDiagHead(2, **{name: scale})
