"""Recorded constructors, also those that a decorator has replaced."""

import functools

import keras
import tensorflow as tf

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
