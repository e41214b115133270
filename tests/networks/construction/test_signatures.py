"""Recorded constructors, also those that a decorator has replaced."""

import copy
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks as tfrl_networks
from tfrl.acme.tf import networks
from tfrl.acme.tf import utils as tf2_utils
from tfrl.networks import network, q_network
from tfrl.specs import tensor_spec

SPEC = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


def configurable(**configured):
    """Replaces a class's constructor as `gin.configurable` does."""

    def decorate(cls):
        init = cls.__init__

        @functools.wraps(init)
        def wrapper(*args, **kwargs):
            init(*args, **{**configured, **kwargs})

        cls.__init__ = wrapper
        return cls

    return decorate


@configurable(size=5)
class Linear(network.Network):
    def __init__(self, input_tensor_spec, size=4, name="Linear"):
        super().__init__(input_tensor_spec, (), name)
        self._layer = keras.layers.Dense(size)

    def call(self, observation, step_type=None, network_state=(), training=False):
        return self._layer(observation), network_state


def test_a_network_of_a_decorated_class_is_made_and_copied():
    made = Linear(SPEC)
    assert made.create_variables().shape == (5,)
    copied = made.copy(name="copy")
    assert (copied.create_variables().shape, copied.name) == ((5,), "copy")
    assert Linear(SPEC, size=6).copy().create_variables().shape == (6,)


def test_a_decorated_class_without_a_constructor_takes_its_parents_arguments():
    @configurable(fc_layer_params=(7,))
    class Q(q_network.QNetwork):
        pass

    made = Q(SPEC, ACTION)
    made.create_variables()
    assert made.copy().create_variables().shape == (2,)
    assert made.variables[0].shape == (3, 7)


X = tf.constant([[0.5, -2.0, 3.0], [1.0, 0.0, -0.5]])


def doubled(inputs):
    return 2 * inputs


MAKE = {
    "a function": lambda: networks.Sequential([doubled, keras.layers.Dense(2)]),
    "a lambda": lambda: networks.Sequential([lambda x: -x, keras.layers.Dense(2)]),
    "heads": lambda: networks.Sequential(
        [
            tf2_utils.batch_concat,
            networks.LayerNormMLP([4], activate_final=True),
            networks.MultivariateNormalDiagHead(2),
            networks.StochasticModeHead(),
        ]
    ),
    "a layer": lambda: networks.DuellingMLP(2, [4]),
    "a state": lambda: networks.DeepRNN([tf.nn.relu, keras.layers.LSTMCell(2)]),
    "a network": lambda: tfrl_networks.QNetwork(SPEC, ACTION, fc_layer_params=(4,)),
}


def output_of(network):
    outputs = network(X)
    return outputs[0] if isinstance(outputs, tuple) else outputs


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("is_called", [False, True])
def test_a_copy_has_weights_of_its_own_with_the_same_values(kind, is_called):
    network = MAKE[kind]()
    if is_called:  # The network does not get the specs of its inputs.
        network(X)
    else:
        tf2_utils.create_variables(network, [SPEC])
    before = output_of(network)
    copied = copy.deepcopy(network)
    assert type(copied) is type(network)
    for variable in network.variables:
        variable.assign(variable + 1)
    np.testing.assert_array_equal(output_of(copied), before)
    assert not np.array_equal(output_of(network), before)


def test_a_network_without_variables_is_copied():
    copied = copy.deepcopy(networks.Sequential([tf2_utils.batch_concat]))
    np.testing.assert_array_equal(copied(X)[0], X)


def test_a_copy_before_there_are_variables_has_the_same_seeds():
    def kernels(*stacks):
        for stack in stacks:
            tf2_utils.create_variables(stack, [SPEC])
        return [stack.variables[0].numpy() for stack in stacks]

    network, untouched = (
        networks.Sequential([keras.layers.Dense(2)], SPEC, seed=1) for _ in range(2)
    )
    copied = copy.deepcopy(network)
    first, second = kernels(network, copied)
    np.testing.assert_array_equal(first, second)
    # The seeds of a later `copy` are as if there had been no `deepcopy`.
    first, second = kernels(network.copy(), untouched.copy())
    np.testing.assert_array_equal(first, second)


def test_a_copy_draws_the_numbers_that_the_original_would_draw():
    noise = networks.ClippedGaussian(1.0, seed=2)
    noise(X)
    copied = copy.deepcopy(noise)
    following = noise(X)
    np.testing.assert_array_equal(copied(X), following)


def test_a_copy_of_what_is_not_trained_is_not_trained():
    network = networks.Sequential([keras.layers.Dense(2)], SPEC)
    network.create_variables()
    network.trainable = False
    assert copy.deepcopy(network).trainable_variables == []


def test_parts_of_a_nest_are_copied_once():
    network = networks.Sequential([keras.layers.Dense(2)], SPEC)
    first, second = copy.deepcopy([network, network])
    assert first is second is not network


def test_a_layer_that_did_not_see_its_inputs_says_what_is_missing():
    layer = networks.LayerNormMLP([2])
    layer(inputs=X)  # Only inputs by position are remembered.
    with pytest.raises(ValueError, match=r"'layer_norm_mlp\w*' are not known.*create_"):
        copy.deepcopy(layer)
