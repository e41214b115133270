"""Layers of recurrent networks."""

import abc
import sys
import types

import keras
import tensorflow as tf

from tfrl.acme.tf import networks


class Joined(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, observation, action):
        return self.dense(tf.concat([observation, action], axis=-1))


def test_the_parts_of_the_inputs_are_arguments():
    layer = networks.UnpackWrapper(Joined())
    output = layer((tf.constant([[1.0, 2.0]]), tf.constant([[4.0]])))
    assert output.numpy().tolist() == [[7.0]]
    assert len(layer.trainable_variables) == 2


def test_it_begins_a_critic():
    critic = networks.Sequential(
        [networks.UnpackWrapper(Joined()), keras.layers.Dense(3)]
    )
    values, _ = critic((tf.zeros([5, 2]), tf.zeros([5, 4])))
    assert values.shape == [5, 3]
    assert len(critic.trainable_variables) == 4


def test_a_deep_rnn_of_an_lstm_keeps_its_state():
    network = networks.DeepRNN(
        [networks.LSTM(hidden_size=4), keras.layers.Dense(2)], seed=0
    )
    inputs = tf.ones([1, 3])
    first, state = network(inputs)
    second, _ = network(inputs, network_state=state)
    assert first.shape == [1, 2]
    assert bool(tf.reduce_any(first != second))


def test_a_recurrent_module_is_one_of_sonnets_where_sonnet_is_imported(monkeypatch):
    SonnetsCore = abc.ABCMeta("RNNCore", (), {})
    sonnet = types.SimpleNamespace(RNNCore=SonnetsCore)
    monkeypatch.setitem(sys.modules, "sonnet", sonnet)

    class Summing(networks.RNNCore):
        def __call__(self, inputs, prev_state):
            return inputs, prev_state + 1

        def initial_state(self, batch_size):
            return tf.zeros([batch_size])

        def unroll(self, inputs, state, sequence_length):
            return inputs, state + sequence_length

    assert isinstance(Summing(), SonnetsCore)
