"""MLPs with layer normalization, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.networks import sequential
from tfrl.networks.heads import distributional
from tfrl.networks.layers import continuous

INPUTS = np.random.default_rng(0).normal(size=[4, 3]).astype(np.float32)


def normalized(x):
    """Layer normalization with the scale 1 and the offset 0 of the start."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


@pytest.mark.parametrize("activate_final", [False, True])
def test_layer_norm_mlp_is_norm_tanh_and_elu(activate_final):
    mlp = continuous.LayerNormMLP([6, 5, 4], activate_final=activate_final)
    outputs = mlp(INPUTS)
    w0, _, scale, _, w1, _, w2, _ = mlp.get_weights()
    np.testing.assert_array_equal(scale, np.ones(6))
    expected = elu(np.tanh(normalized(INPUTS @ w0)) @ w1) @ w2
    expected = elu(expected) if activate_final else expected
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_a_single_layer_has_norm_and_tanh():
    mlp = continuous.LayerNormMLP([6])
    outputs = mlp(INPUTS)
    expected = np.tanh(normalized(INPUTS @ mlp.get_weights()[0]))
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_nests_are_flattened_and_joined():
    mlp = continuous.LayerNormMLP([2])
    mlp({"b": tf.ones([5, 2, 2]), "a": tf.ones([5])})
    assert mlp.get_weights()[0].shape == (5, 2)


def test_sequences_keep_their_time():
    network = sequential.Sequential(
        [continuous.LayerNormMLP([3])], tf.TensorSpec([3]), seed=0
    )
    sequence = tf.tile(INPUTS[:, np.newaxis], [1, 2, 1])
    outputs, _ = network(sequence)
    assert outputs.shape == [4, 2, 3]
    np.testing.assert_allclose(outputs[:, 1], network(INPUTS)[0], rtol=1e-5, atol=1e-6)


def test_kernels_are_uniform_of_a_third_over_the_outputs():
    mlp = continuous.LayerNormMLP([300])
    mlp(tf.zeros([1, 200]))
    kernel = mlp.get_weights()[0]
    # Uniform in [-a, a] has the variance a^2 / 3.
    bound = np.sqrt(0.333 * 3 / 300)
    assert 0.99 * bound < np.abs(kernel).max() <= bound
    np.testing.assert_allclose(kernel.std(), bound / np.sqrt(3), rtol=0.02)


def test_residual_mlp_normalizes_the_sum():
    mlp = continuous.LayerNormAndResidualMLP(5, num_blocks=1)
    outputs = mlp(INPUTS)
    w0, _, w1, _, w2, *_ = mlp.get_weights()
    x = INPUTS @ w0
    expected = normalized(x + np.maximum(x @ w1, 0) @ w2)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)
    deeper = continuous.LayerNormAndResidualMLP(5, num_blocks=3)
    deeper(INPUTS)
    # 3 x 5 + 5, and for each block two layers of 5 x 5 + 5 and 10 for the norm.
    assert deeper.count_params() == 20 + 3 * (60 + 10)


def test_near_zero_linear_starts_near_zero():
    linear = continuous.NearZeroInitializedLinear(200)
    outputs = linear(tf.ones([1, 100]))
    np.testing.assert_allclose(linear.get_weights()[0].std(), 1e-3, rtol=0.05)
    assert np.abs(outputs).max() < 0.05


@pytest.mark.parametrize(
    "make",
    [
        continuous.NearZeroInitializedLinear,
        lambda size: continuous.LayerNormMLP([size]),
        lambda size: distributional.MultivariateNormalDiagHead(size, tanh_mean=True),
    ],
)
def test_sizes_may_be_integers_of_numpy(make):
    layer = make(np.prod((2, 3), dtype=int))
    again = type(layer).from_config(layer.get_config())
    for each in (layer, again):
        each(INPUTS)
        assert each.weights[-1].shape == (6,)


@processors.multiplies_in_half_precision
@pytest.mark.parametrize(
    "make",
    [
        lambda **kwargs: continuous.LayerNormMLP([6, 5], **kwargs),
        lambda **kwargs: continuous.LayerNormAndResidualMLP(6, 2, **kwargs),
        lambda **kwargs: continuous.NearZeroInitializedLinear(6, **kwargs),
    ],
)
def test_mixed_precision_is_of_the_layers_inside_too(make):
    mixed, wide = make(dtype="mixed_bfloat16"), make()
    outputs, expected = mixed(INPUTS), wide(INPUTS)
    assert outputs.dtype == tf.bfloat16
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    mixed.set_weights(wide.get_weights())
    # bfloat16 has a precision of 2^-8.
    np.testing.assert_allclose(
        tf.cast(mixed(INPUTS), tf.float32), expected, rtol=0.02, atol=0.02
    )
    inner = type(mixed).from_config(mixed.get_config())
    assert inner(INPUTS).dtype == tf.bfloat16


def test_seeds_reach_each_layer():
    def kernels(seed):
        network = sequential.Sequential(
            [continuous.LayerNormMLP([3, 3, 3])], tf.TensorSpec([3]), seed=seed
        )
        network.create_variables()
        return [v.numpy() for v in network.variables if len(v.shape) == 2]

    first, again, other = kernels(1), kernels(1), kernels(2)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert not np.allclose(first[0], first[1])
    assert not np.allclose(first[1], first[2])


def test_an_initialiser_with_a_seed_gives_each_layer_other_numbers():
    mlp = continuous.LayerNormMLP([3, 3], keras.initializers.GlorotNormal(seed=0))
    same = continuous.LayerNormMLP([3, 3], keras.initializers.GlorotNormal(seed=0))
    for layer in (mlp, same):
        layer(INPUTS)
    first, *_, second, _ = mlp.get_weights()
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(first, same.get_weights()[0])


def test_no_layers_are_an_error():
    with pytest.raises(ValueError, match=r"layer_sizes: got \[\], expected"):
        continuous.LayerNormMLP([])
