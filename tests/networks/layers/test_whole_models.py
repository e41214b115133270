"""One model of Keras encodes a whole dict of observations."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import tfrl
from tests.algorithms.test_spaces import Tiny
from tests.networks.layers.test_encoders import pixels, q_network, spec_of
from tfrl import networks
from tfrl.specs import tensor_spec

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
