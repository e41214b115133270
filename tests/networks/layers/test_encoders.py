import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import tfrl
from tests.algorithms.test_spaces import Tiny
from tfrl import networks
from tfrl.agents.ppo import ppo_networks
from tfrl.networks.layers import encoders
from tfrl.specs import tensor_spec
from tfrl.specs.gym_spaces import spec_from_gym_space

ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
MNIH = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
MEDIUM = ((32, 4, 2), (64, 4, 2), (64, 3, 1))
SMALL = ((16, 3, 1), (32, 3, 1))


def pixels(*shape, high=255, dtype=np.uint8):
    return spaces.Box(0, high, shape, dtype)


def spec_of(space):
    return tensor_spec.from_spec(spec_from_gym_space(space))


def batch(space, number=3):
    space.seed(3)
    return tf.nest.map_structure(
        lambda spec, *leaves: np.stack(leaves).astype(spec.dtype),
        spec_from_gym_space(space),
        *(space.sample() for _ in range(number)),
    )


def q_network(spec, **arguments):
    return networks.QNetwork(spec, ACTION, fc_layer_params=(5,), seed=7, **arguments)


ROOM = spaces.Dict(
    {
        "camera": pixels(20, 24, 3),
        "map": pixels(7, 7, 2, high=10, dtype=np.int64),
        "position": spaces.Box(-1, 1, (3,), np.float32),
        "key": spaces.Discrete(4),
    }
)


@pytest.mark.parametrize(
    ("space", "convolutions"),
    [
        (pixels(84, 84, 4), MNIH),
        (pixels(96, 96, 3), MNIH),
        (pixels(210, 36, 3), MNIH),
        (pixels(210, 35, 3), MEDIUM),
        (pixels(20, 20, 1), MEDIUM),
        (pixels(19, 30, 1), SMALL),
        (pixels(7, 7, 3), SMALL),
        (pixels(7, 7, 3, dtype=np.float32), SMALL),
        (pixels(7, 7, 3, high=10, dtype=np.int64), SMALL),
        (pixels(10, 10, 4, high=1, dtype=np.bool_), SMALL),
        (pixels(5, 5, 9, high=1, dtype=np.int8), SMALL),
        (pixels(4, 84, 84), MNIH),
        (pixels(96, 96), MNIH),
        (pixels(4, 36, 36, 3), MNIH),
    ],
    ids=str,
)
def test_images_get_convolutions_fit_for_their_size(space, convolutions):
    spec = spec_of(space)
    arguments = encoders.observation_encoder(spec)
    assert arguments["conv_layer_params"] == convolutions
    assert encoders.has_images(spec)
    values, _ = q_network(spec, **arguments)(batch(space))
    assert values.shape == (3, 3)


@pytest.mark.parametrize(
    "space",
    [
        pixels(4, 4, 3),
        spaces.Box(-np.inf, np.inf, (9, 9, 3), np.float32),
        pixels(7, 7, 3, high=2**40, dtype=np.int64),
        pixels(7, 7, dtype=np.float32),
        spaces.MultiDiscrete([3, 4]),
        spaces.Dict({"a": pixels(4, 4, 3), "b": spaces.Discrete(2)}),
    ],
    ids=str,
)
def test_other_observations_are_encoded_as_before(space):
    spec = spec_of(space)
    arguments = encoders.observation_encoder(spec, dtype="mixed_bfloat16")
    assert not encoders.has_images(spec)
    assert "conv_layer_params" not in arguments
    layers, combiner = networks.default_preprocessing(spec)
    before = {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "dtype": "mixed_bfloat16",
    }
    observations = batch(space)
    ours, theirs = (q_network(spec, **a)(observations)[0] for a in (arguments, before))
    np.testing.assert_array_equal(ours, theirs)


def test_given_convolutions_of_an_image_make_the_same_network_as_before():
    spec, observations = spec_of(pixels(9, 9, 4)), batch(pixels(9, 9, 4))
    given = [[4, 3, 2], [6, 2, 1]]
    arguments = encoders.observation_encoder(spec, conv_layer_params=given)
    before = {
        "preprocessing_layers": keras.layers.Rescaling(1 / 255),
        "conv_layer_params": tuple(given),
        "dtype": "float32",
    }
    ours, theirs = (q_network(spec, **a) for a in (arguments, before))
    np.testing.assert_array_equal(ours(observations)[0], theirs(observations)[0])
    assert [v.shape for v in ours.variables] == [v.shape for v in theirs.variables]
    assert type(arguments["preprocessing_layers"]) is keras.layers.Rescaling


def test_empty_convolutions_flatten_images():
    space = spaces.Dict({"a": pixels(9, 9, 1), "b": spaces.Discrete(3)})
    arguments = encoders.observation_encoder(spec_of(space), conv_layer_params=())
    network = networks.EncodingNetwork(spec_of(space), **arguments)
    assert network(batch(space))[0].shape == (3, 81 + 3)


def test_channels_first_is_transposed():
    frames = batch(pixels(9, 9, 2))
    first = np.transpose(frames, [0, 3, 1, 2])
    results = []
    for space, images in ((pixels(9, 9, 2), frames), (pixels(2, 9, 9), first)):
        spec = spec_of(space)
        network = q_network(spec, **encoders.observation_encoder(spec))
        results.append(network(images)[0])
    np.testing.assert_array_equal(*results)


def test_stacked_pictures_become_channels():
    stack = batch(pixels(4, 9, 8, 3))
    joined = np.concatenate([stack[:, i] for i in range(4)], axis=-1)
    results = []
    for space, images in ((pixels(4, 9, 8, 3), stack), (pixels(9, 8, 12), joined)):
        spec = spec_of(space)
        network = q_network(spec, **encoders.observation_encoder(spec))
        results.append(network(images)[0])
    np.testing.assert_array_equal(*results)


def test_integers_are_scaled_by_their_bounds():
    space = spaces.Box(10, 15, (6, 6, 1), np.int32)
    layer = encoders.observation_encoder(spec_of(space))["preprocessing_layers"]
    expected = (batch(space) - 10) / 5
    np.testing.assert_allclose(layer(batch(space)), expected, atol=1e-6)
    floats = spec_of(pixels(6, 6, 1, dtype=np.float32))
    assert encoders.observation_encoder(floats)["preprocessing_layers"] is None


def test_a_critics_image_is_convolved_with_the_same_weights():
    spec, images = spec_of(pixels(9, 9, 4)), batch(pixels(9, 9, 4))
    plain, within = (
        q_network(spec, **encoders.observation_encoder(spec, for_critic=for_critic))
        for for_critic in (False, True)
    )
    np.testing.assert_array_equal(plain(images)[0], within(images)[0])
    arguments = encoders.observation_encoder(spec, for_critic=True)
    critics = networks.CriticEnsembleNetwork(
        (spec, ACTION), num_critics=2, fc_layer_params=(4,), seed=1, **arguments
    )
    assert critics((images, np.array([0, 1, 2])))[0].shape == (3, 2)


def test_each_image_of_a_nest_has_seeded_convolutions_and_the_rest_is_joined():
    spec, observations = spec_of(ROOM), batch(ROOM)
    arguments = encoders.observation_encoder(spec)
    encoding = networks.EncodingNetwork(spec, **arguments, seed=4)
    # 7x7 cells are 5x5 and then 3x3 with 32 filters, 20x24 pixels end as 1x2 with 64.
    assert encoding(observations)[0].shape == (3, 3 * 3 * 32 + 64 * 2 + 3 + 4)
    same, other = (
        networks.EncodingNetwork(spec, **arguments, seed=seed)(observations)[0]
        for seed in (4, 5)
    )
    np.testing.assert_array_equal(encoding(observations)[0], same)
    assert np.any(np.not_equal(same, other))
    copied = encoding.copy(seed=4)
    np.testing.assert_array_equal(copied(observations)[0], same)
    kernels = [v for v in encoding.trainable_variables if len(v.shape) == 4]
    assert len(kernels) == len(SMALL) + len(MEDIUM)
    # He's initialisation, as in a network's own convolutions.
    fan_in = np.prod(kernels[-1].shape[:3])
    assert abs(np.std(kernels[-1]) * (fan_in / 2) ** 0.5 - 1) < 0.05


def test_given_convolutions_are_for_the_images_of_a_nest():
    arguments = encoders.observation_encoder(
        spec_of(ROOM), conv_layer_params=[(2, 3, 1)]
    )
    layers = arguments["preprocessing_layers"]
    assert arguments["preprocessing_combiner"] is not None
    for name in ("camera", "map"):
        kinds = [type(layer).__name__ for layer in layers[name].layers]
        assert kinds == ["Rescaling", "Conv2D", "Flatten"]


@pytest.mark.slow
def test_a_nest_compiles_in_mixed_precision_as_in_single_precision():
    spec, observations = spec_of(ROOM), batch(ROOM)
    results = []
    for dtype in ("float32", "mixed_bfloat16"):
        arguments = encoders.observation_encoder(spec, dtype=dtype)
        network = q_network(spec, **arguments)
        network.create_variables()
        call = tf.function(network, jit_compile=dtype == "float32", autograph=False)
        results.append(call(observations)[0])
        assert {v.dtype for v in network.trainable_variables} == {"float32"}
    np.testing.assert_allclose(*results, rtol=0.05, atol=0.05)


def test_ppos_networks_convolve_by_themselves():
    spec, observations = spec_of(ROOM), batch(ROOM)
    actor, critic = ppo_networks.create_networks(spec, ACTION, (5,), seed=1)
    assert actor(observations)[0].logits.shape == (3, 3)
    assert critic(observations)[0].shape == (3,)
    for network in (actor, critic):
        first = next(v for v in network.trainable_variables if len(v.shape) == 4)
        columns = np.reshape(first, [-1, first.shape[-1]])
        gram = columns.T @ columns
        np.testing.assert_allclose(gram, 2 * np.eye(len(gram)), atol=1e-4)
    flat = ppo_networks.create_networks(spec, ACTION, (5,), conv_layer_params=())[0]
    flat(observations)
    assert all(len(v.shape) < 4 for v in flat.trainable_variables)


def test_a_line_says_what_is_done():
    assert encoders.describe(spec_of(ROOM)) == (
        "observation camera [20, 24, 3]: image, convolutions (32, 4, 2), (64, 4, 2), "
        "(64, 3, 1); key []: one of 4; map [7, 7, 2]: image, convolutions (16, 3, 1), "
        "(32, 3, 1); position [3]: as it is; joined"
    )
    for space, expected in (
        (pixels(4, 84, 84), "[4, 84, 84]: image, channels first, convolutions (32, 8"),
        (
            pixels(9, 9, 1, dtype=np.float32),
            "[9, 9, 1]: image, unscaled floats from 0 to 255, convolutions (16, 3, 1)",
        ),
        (spaces.MultiDiscrete([3, 4]), "[2]: one-hot, 7 numbers"),
        (spaces.MultiBinary(4), "[4]: as numbers"),
        (pixels(4, 4, 3), "[4, 4, 3]: scaled to [0, 1], flattened, 48 numbers"),
        (spaces.Box(-1, 1, (2, 3), np.float32), "[2, 3]: flattened, 6 numbers"),
    ):
        assert encoders.describe(spec_of(space)).startswith(f"observation {expected}")
    unbounded = spec_of(spaces.Box(-np.inf, np.inf, (9, 9, 1), np.float32))
    assert encoders.describe(unbounded, [(8, 3, 1)]) == (
        "observation [9, 9, 1]: image, unscaled floats, convolutions (8, 3, 1)"
    )


@pytest.mark.parametrize(
    ("space", "given", "message"),
    [
        (spaces.Dict({}), None, "observation_spec: got {}, expected at least one"),
        (
            spaces.Box(-1, 1, (4,)),
            [(8, 3, 1)],
            r"^conv_layer_params: got \(\(8, 3, 1\),\), but no observation is an image "
            r".*: observation \[4\]: as it is; leave the argument out",
        ),
        (
            spaces.Dict({"eye": pixels(7, 7, 3)}),
            [(8, 3, 2), (8, 4, 1)],
            r"^conv_layer_params: .* kernel of number 2 is larger than its input, for "
            r"the image observation/eye of 7x7 pixels; take smaller .*\(16, 3, 1\)",
        ),
        (pixels(7, 7, 3), [(8, 3)], r"conv_layer_params\[0\]: got .* 3 or 4 elements"),
    ],
    ids=["nothing", "vector", "large", "short"],
)
def test_what_does_not_fit_is_refused(space, given, message):
    with pytest.raises(ValueError, match=message):
        encoders.observation_encoder(spec_of(space), conv_layer_params=given)


def test_an_array_of_floats_without_bounds_is_an_image_if_convolutions_are_given():
    space = spaces.Box(-np.inf, np.inf, (8, 8, 3), np.float32)
    arguments = encoders.observation_encoder(
        spec_of(space), conv_layer_params=[(4, 3, 2)]
    )
    assert arguments["conv_layer_params"] == ((4, 3, 2),)
    assert arguments["preprocessing_layers"] is None


def residual(*shape):
    """A functional model with an operation that is no layer."""
    inputs = keras.Input(shape)
    hidden = keras.layers.Dense(shape[-1], "relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(6)(hidden + inputs))


def test_an_own_model_takes_the_place_of_the_layers():
    space = spaces.Box(-1, 1, (4,), np.float32)
    encoded = networks.observation_encoder(spec_of(space), encoder=residual(4))
    network = q_network(spec_of(space), **encoded)
    assert network(batch(space))[0].shape == (3, 3)
    shapes = [tuple(x.shape) for x in network.variables]
    assert shapes[:4] == [(4, 4), (4,), (4, 6), (6,)]
    assert shapes[4] == (6, 5)
    # Copies draw weights of their own from the network's seed.
    again = q_network(spec_of(space), **encoded)
    again.create_variables()
    for one, same in zip(network.variables, again.variables, strict=True):
        np.testing.assert_array_equal(one, same)


def test_an_own_model_of_a_leaf_sees_a_scaled_image():
    space = spaces.Dict(camera=pixels(8, 8, 3), speed=spaces.Box(-1, 1, (2,)))
    seen = keras.Sequential([keras.layers.GlobalMaxPooling2D()])
    encoded = networks.observation_encoder(spec_of(space), encoder={"camera": seen})
    network = networks.EncodingNetwork(spec_of(space), **encoded)
    observation = {
        "camera": np.full((1, 8, 8, 3), 255, np.uint8),
        "speed": np.array([[0.25, -0.5]], np.float32),
    }
    np.testing.assert_allclose(network(observation)[0], [[1, 1, 1, 0.25, -0.5]])


@pytest.mark.parametrize("high", [1.0, np.inf])
def test_an_own_model_sees_floats_in_their_shape(high):
    space = spaces.Box(0, high, (8, 8, 3), np.float32)
    pooled = keras.layers.GlobalMaxPooling2D()
    encoded = networks.observation_encoder(spec_of(space), encoder=pooled)
    network = networks.EncodingNetwork(spec_of(space), **encoded)
    assert network(np.ones((2, 8, 8, 3), np.float32))[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("space", "encoder", "error", "message"),
    [
        (
            pixels(8, 8, 3),
            5,
            TypeError,
            "encoder: got a int, expected a layer or a mod",
        ),
        (ROOM, {"door": keras.layers.Dense(2)}, ValueError, "encoder: got 'door', exp"),
        (ROOM, keras.layers.Dense(2), ValueError, "got one layer, expected a dict for"),
        (
            pixels(8, 8, 3),
            {"camera": keras.layers.Dense(2)},
            ValueError,
            "got 'camera', expected a layer alone, for one array",
        ),
    ],
)
def test_an_own_encoder_that_does_not_fit_is_named(space, encoder, error, message):
    with pytest.raises(error, match=message):
        networks.observation_encoder(spec_of(space), encoder=encoder)


ROBOT = spaces.Dict(
    camera=pixels(8, 8, 3),
    speed=spaces.Box(-1, 1, (2,), np.float32),
    gear=spaces.Discrete(3),
)
SHAPES = {"camera": (8, 8, 3), "speed": (2,), "gear": (3,)}
OBSERVATION = {
    "camera": np.full((1, 8, 8, 3), 255, np.uint8),
    "speed": np.array([[0.25, -0.5]], np.float32),
    "gear": np.array([1]),
}


def inputs_of(**shapes):
    return {name: keras.Input(shape, name=name) for name, shape in shapes.items()}


def join(inputs):
    parts = [keras.layers.Flatten()(x) for x in inputs.values()]
    return keras.layers.Concatenate()(parts)


def mixed(inputs):
    pooled = keras.layers.GlobalMaxPooling2D()(inputs["camera"])
    return join({**inputs, "camera": pooled})


def encoded(model, **arguments):
    return networks.observation_encoder(spec_of(ROBOT), encoder=model, **arguments)


class Own(keras.Model):
    def call(self, observation):
        pooled = tf.reduce_max(observation["camera"], [1, 2])
        return tf.concat([pooled, observation["speed"], observation["gear"]], -1)


def functional(as_dict):
    inputs = inputs_of(**SHAPES)
    outputs = mixed(inputs)
    return keras.Model(inputs if as_dict else list(inputs.values()), outputs)


@pytest.mark.parametrize(
    "model", [functional(True), functional(False), Own()], ids=["dict", "list", "own"]
)
def test_a_model_sees_all_leaves_by_their_names(model):
    network = networks.EncodingNetwork(spec_of(ROBOT), **encoded(model))
    expected = [[1, 1, 1, 0.25, -0.5, 0, 1, 0]]
    np.testing.assert_allclose(network(OBSERVATION)[0], expected)


@pytest.mark.filterwarnings("error:.*has weights already")
def test_each_network_has_a_seeded_copy_of_it():
    inputs = inputs_of(**SHAPES)
    model = keras.Model(inputs, keras.layers.Dense(4)(mixed(inputs)))
    one, same = (q_network(spec_of(ROBOT), **encoded(model)) for _ in range(2))
    kernels = [network(OBSERVATION) and network.variables[0] for network in (one, same)]
    assert kernels[0].shape == (8, 4)
    np.testing.assert_array_equal(*kernels)
    assert kernels[0] is not kernels[1]
    # A critic has a network that has a copy; it says nothing of weights to lose.
    critic = networks.CriticEnsembleNetwork(
        (spec_of(ROBOT), tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1)),
        fc_layer_params=(5,),
        **encoded(model, for_critic=True),
    )
    critic.create_variables()
    assert tuple(critic.variables[0].shape) == (8, 4)


@pytest.mark.parametrize(
    ("inputs", "end", "message"),
    [
        (
            {"image": (8, 8, 3), "speed": (2,), "gear": (3,)},
            join,
            r"the model has the inputs gear, image, speed, expected one for each leaf "
            r"of the observation, camera \[8, 8, 3\], gear \[3\], speed \[2\]; name ",
        ),
        (
            {**SHAPES, "speed": (5,)},
            join,
            r"the model's input 'speed' has the shape \[5\], expected \[2\], .* make "
            r"it keras.Input\(\(2,\), name='speed'\)",
        ),
        ({**SHAPES, "map": (4,)}, join, ".* inputs camera, gear, map, speed, expected"),
        (SHAPES, lambda inputs: [join(inputs)] * 2, "the model returns .* one tensor"),
    ],
)
def test_a_model_that_does_not_fit_is_told_the_leaf(inputs, end, message):
    made = inputs_of(**inputs)
    model = keras.Model(made, end(made))
    with pytest.raises(ValueError, match=f"^encoder: {message}"):
        encoded(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "action"),
    [
        (tfrl.DQN, spaces.Discrete(3)),
        (tfrl.PPO, spaces.Discrete(3)),
        (tfrl.SAC, spaces.Box(-1, 1, (2,), np.float32)),
    ],
)
def test_algorithms_learn_with_one_model_for_a_dict(kind, action):
    inputs = inputs_of(**SHAPES)
    model = keras.Model(inputs, keras.layers.Dense(6, "relu")(mixed(inputs)))
    made = kind(Tiny(ROBOT, action), encoder=model, seed=0)
    made.learn(64, progress=False)
    shapes = [tuple(x.shape) for x in made.agent.variables()]
    assert shapes.count((8, 6)) >= 2
    assert action.contains(made.predict(ROBOT.sample())[0])
