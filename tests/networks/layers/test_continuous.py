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


OBSERVATION = np.arange(4, dtype=np.float32).reshape(2, 2)
ACTION = np.array([[10.0], [20.0]], np.float32)


def test_it_joins_observation_and_action():
    multiplexer = continuous.CriticMultiplexer()
    expected = [[0, 1, 10], [2, 3, 20]]
    np.testing.assert_array_equal(multiplexer(OBSERVATION, ACTION), expected)
    np.testing.assert_array_equal(multiplexer((OBSERVATION, ACTION)), expected)


def test_networks_transform_their_parts():
    multiplexer = continuous.CriticMultiplexer(
        critic_network=lambda joined: joined + 1,
        observation_network=sequential.Sequential([tf.square]),
        action_network=keras.layers.Rescaling(0.1),
    )
    np.testing.assert_allclose(
        multiplexer(OBSERVATION, ACTION), [[1, 2, 2], [5, 10, 3]], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_dtypes_are_brought_together(dtype):
    joined = continuous.CriticMultiplexer()(
        {"x": OBSERVATION.astype(dtype), "y": ACTION}, ACTION / 4
    )
    assert joined.dtype == tf.float32
    np.testing.assert_array_equal(joined, [[0, 1, 10, 2.5], [2, 3, 20, 5]])


@pytest.fixture(scope="module")
def critic():
    critic = sequential.Sequential(
        [
            continuous.CriticMultiplexer(
                observation_network=keras.layers.Dense(3, name="observe")
            ),
            continuous.LayerNormMLP([4], activate_final=True),
            distributional.DiscreteValuedHead(-1.0, 1.0, 5),
        ],
        (tf.TensorSpec([2]), tf.TensorSpec([1])),
        seed=0,
    )
    critic.create_variables()
    return critic


def test_a_copy_has_weights_of_its_own(critic):
    copied = critic.copy()
    copied.create_variables()
    assert len(copied.variables) == len(critic.variables) == 8
    assert not {id(v) for v in copied.variables} & {id(v) for v in critic.variables}


def test_it_can_be_saved_as_a_configuration(critic):
    config = keras.saving.serialize_keras_object(critic)
    loaded = keras.saving.deserialize_keras_object(config)
    inputs = (OBSERVATION, ACTION)
    loaded(inputs)
    for ours, theirs in zip(loaded.variables, critic.variables, strict=True):
        ours.assign(theirs)
    np.testing.assert_array_equal(loaded(inputs)[0].mean(), critic(inputs)[0].mean())


def test_weights_are_shared_with_the_networks_given():
    observe = keras.layers.Dense(3)
    first, second = (
        continuous.CriticMultiplexer(observation_network=observe) for _ in range(2)
    )
    np.testing.assert_array_equal(
        first(OBSERVATION, ACTION), second(OBSERVATION, ACTION)
    )
