"""Objects of Keras 2 are refused where they would become parts of Keras 3's."""

import keras
import pytest
import tensorflow as tf
import tf_keras

from tfrl.networks import EncodingNetwork, QNetwork, Sequential, network
from tfrl.specs import tensor_spec
from tfrl.utils.optimization import optimizers

SPEC = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
MESSAGE = r"of Keras 2, expected that of Keras 3, .* delete the line os\.environ\[\"TF_"


class WithHead(network.Network):
    """An encoder with a head, whose layers may be in a list or inside a layer."""

    def __init__(self, wrapped, name="WithHead"):
        super().__init__(SPEC, (), name)
        self._encoder = EncodingNetwork(SPEC, fc_layer_params=(4,))
        self._head = wrapped(tf_keras.layers.Dense(2))

    def call(self, observation, step_type=None, network_state=(), training=False):
        encoding, _ = self._encoder(observation, step_type=step_type)
        head = self._head
        while isinstance(head, list | dict):
            head = head[0]
        return head(encoding), network_state


class Own(keras.layers.Layer):
    def __init__(self, inner):
        super().__init__()
        self._inner = inner

    def call(self, inputs):
        return self._inner(inputs)


@pytest.mark.parametrize(
    ("wrapped", "place"),
    [
        (lambda head: head, r"WithHead\._head"),
        (lambda head: [head], r"WithHead\._head"),
        (lambda head: {0: [head]}, r"WithHead\._head"),
        (Own, r"own\w*\._inner"),
    ],
)
def test_a_head_of_keras_2_does_not_lose_its_weights_in_silence(wrapped, place):
    made = WithHead(wrapped)
    for _ in range(2):
        with pytest.raises(TypeError, match=rf"^{place}: got the Dense {MESSAGE}"):
            made.create_variables()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sequential([tf_keras.layers.Dense(2)], input_spec=SPEC),
        lambda: QNetwork(SPEC, ACTION, preprocessing_layers=tf_keras.layers.Dense(2)),
        lambda: network.as_network(tf_keras.Sequential()),
        lambda: optimizers.OptimizerAdapter(
            tf_keras.optimizers.Adam(), [keras.Variable([1.0])]
        ),
    ],
)
def test_layers_models_and_optimizers_of_keras_2_are_refused(make):
    with pytest.raises(TypeError, match=MESSAGE):
        make()
