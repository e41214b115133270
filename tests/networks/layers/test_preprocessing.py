import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from tfrl.environments import suite_gym
from tfrl.networks import actor_distribution_network, encoding_network, q_network
from tfrl.networks.construction import seeding
from tfrl.networks.layers import preprocessing
from tfrl.specs import tensor_spec
from tfrl.specs.gym_spaces import spec_from_gym_space

ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)


def encoder(space):
    """An encoder without dense layers, which returns what it would give to them."""
    spec = tensor_spec.from_spec(spec_from_gym_space(space))
    layers, combiner = preprocessing.default_preprocessing(spec)
    return encoding_network.EncodingNetwork(
        spec, preprocessing_layers=layers, preprocessing_combiner=combiner
    )


def sample(space, number=7):
    """Samples of a space, and the same as one batch with the dtypes of the specs."""
    space.seed(3)
    samples = [space.sample() for _ in range(number)]
    batch = tf.nest.map_structure(
        lambda spec, *leaves: np.stack(leaves).astype(spec.dtype),
        spec_from_gym_space(space),
        *samples,
    )
    return samples, batch


SPACES = {
    "discrete": spaces.Discrete(5, start=-2),
    "multi_discrete": spaces.MultiDiscrete([2, 3, 4], start=[0, -1, 7]),
    "table": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "tuple": spaces.Tuple((spaces.Discrete(32), spaces.Discrete(2))),
    "dict": spaces.Dict(
        {
            "speed": spaces.Box(-1, 1, (2, 2), np.float32),
            "place": spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2, start=5))),
            "lamps": spaces.MultiBinary(4),
        }
    ),
    "dict of one": spaces.Dict({"place": spaces.Discrete(3)}),
}


@pytest.mark.parametrize("name", SPACES)
def test_vectors_are_those_of_gymnasiums_flatten(name):
    space = SPACES[name]
    samples, batch = sample(space)
    encoded, _ = encoder(space)(batch)
    expected = np.stack([spaces.flatten(space, element) for element in samples])
    np.testing.assert_array_equal(encoded, expected)


def test_sequences_keep_their_outer_dimensions():
    space = SPACES["dict"]
    _, batch = sample(space, 6)
    network = encoder(space)
    flat, _ = network(batch)
    sequences = tf.nest.map_structure(lambda x: x.reshape(2, 3, *x.shape[1:]), batch)
    np.testing.assert_array_equal(
        network(sequences)[0], tf.reshape(flat, [2, 3, flat.shape[1]])
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (3, 4, 2), np.uint8),
        spaces.Box(10, 15, (3, 4), np.uint8),
    ],
)
def test_images_are_scaled_to_their_bounds(space):
    _, images = sample(space)
    low, high = int(space.low.min()), int(space.high.max())
    expected = (images.reshape(7, -1).astype(np.float64) - low) / (high - low)
    np.testing.assert_allclose(encoder(space)(images)[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1000, 30_000, (2,), np.int32),
        spaces.Box(0, 255, (6,), np.uint8),
        spaces.Box(0, 1, (2, 3), np.int8),
        spaces.Box(-(2**63), 2**63 - 1, (1,), np.int64),
        spaces.Box(0, 1, (3, 2), np.bool_),
        spaces.Discrete(20_000),
    ],
    ids=str,
)
def test_numbers_bytes_and_bits_are_cast(space):
    _, arrays = sample(space)
    encoded, _ = encoder(space)(arrays)
    assert encoded.dtype == tf.float32
    expected = arrays.reshape(7, -1).astype(np.float32)
    np.testing.assert_array_equal(encoded, expected)


def test_a_floating_observation_needs_no_layer_and_gets_the_same_weights():
    spec = tensor_spec.BoundedTensorSpec([4], tf.float32, -1, 1)
    layers, combiner = preprocessing.default_preprocessing(spec)
    assert (layers, combiner) == (None, None)
    networks = [
        q_network.QNetwork(spec, ACTION, **arguments, seed=3)
        for arguments in (
            {},
            {"preprocessing_layers": layers, "preprocessing_combiner": combiner},
        )
    ]
    for network in networks:
        network.create_variables()
    plain, default = ([v.numpy() for v in n.variables] for n in networks)
    for before, now in zip(plain, default, strict=True):
        np.testing.assert_array_equal(before, now)


def test_the_same_layers_serve_several_networks():
    spec = tensor_spec.from_spec(spec_from_gym_space(SPACES["dict"]))
    layers, combiner = preprocessing.default_preprocessing(spec)
    arguments = {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "fc_layer_params": (4,),
    }
    actor = actor_distribution_network.ActorDistributionNetwork(
        spec, ACTION, **arguments
    )
    values = q_network.QNetwork(spec, ACTION, **arguments)
    _, observations = sample(SPACES["dict"])
    assert actor(observations)[0].batch_shape == (7,)
    assert values(observations)[0].shape == (7, 3)
    assert values.copy()(observations)[0].shape == (7, 3)


def test_one_hot_compiles_copies_and_turns_other_values_into_zeros():
    layer = preprocessing.OneHot([1, 0], [2, 1])
    copied = seeding.copy_layer(layer)
    compiled = tf.function(copied, jit_compile=True, autograph=False)
    numbers = tf.constant([[1, 1], [2, 0], [3, -1]])
    expected = [[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(compiled(numbers), expected)
    symbolic = layer(keras.Input([2], dtype="int32"))
    assert symbolic.shape == (None, 4)


def test_a_large_image_is_an_error_that_names_convolutions():
    space = spaces.Dict({"camera": spaces.Box(0, 255, (210, 160, 3), np.uint8)})
    with pytest.raises(
        ValueError,
        match=r"observation_spec/camera: got an image of shape \(210, 160, 3\), "
        r"100,800 numbers, expected at most 10,000 .*; give the network "
        "conv_layer_params",
    ):
        encoder(space)


def test_text_is_an_error_that_names_the_observation():
    spec = {"name": tf.TensorSpec([], tf.string)}
    with pytest.raises(ValueError, match=r"observation_spec/name: got .* expected num"):
        preprocessing.default_preprocessing(spec)


def test_real_environments_have_the_expected_widths():
    widths = {"FrozenLake": 16, "Taxi": 500, "Blackjack": 32 + 11 + 2}
    for name, width in widths.items():
        space = gymnasium.make(suite_gym.find_spec(name)).observation_space
        assert encoder(space).create_variables() == tf.TensorSpec([width])
