import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import squashed_outer_wrapper
from tfrl.networks import sequential

Wrapper = squashed_outer_wrapper.SquashedOuterWrapper


@pytest.mark.parametrize("outer", [(2,), (2, 3), (2, 3, 2)])
def test_layer_sees_one_batch_dimension(outer):
    conv = keras.layers.Conv2D(4, 2)
    x = np.random.default_rng(0).normal(size=[*outer, 3, 3, 1]).astype(np.float32)
    layer = Wrapper(conv, inner_rank=3)
    outputs = layer(x)
    assert outputs.shape == (*outer, 2, 2, 4)
    folded = conv(x.reshape([-1, 3, 3, 1]))
    np.testing.assert_allclose(outputs, tf.reshape(folded, outputs.shape), rtol=1e-6)
    assert layer.compute_output_shape(x.shape) == outputs.shape


def test_sizes_may_be_unknown_in_a_graph():
    layer = Wrapper(keras.layers.Dense(4), inner_rank=2)
    layer.build((None, 3, 2))
    function = tf.function(
        layer.call, input_signature=[tf.TensorSpec([None, None, 3, 2])]
    )
    (output,) = function.get_concrete_function().outputs
    assert output.shape.as_list() == [None, None, 3, 4]
    assert function(tf.ones([5, 7, 3, 2])).shape == (5, 7, 3, 4)


def test_weights_and_losses_are_those_of_the_layer():
    dense = keras.layers.Dense(2, kernel_regularizer="l2")
    layer = Wrapper(dense, 1)
    layer(tf.ones([2, 3, 4]))
    assert len(layer.trainable_weights) == 2
    assert len(layer.losses) == 1
    assert (layer.wrapped, layer.inner_rank) == (dense, 1)


def test_training_is_passed_on():
    layer = Wrapper(keras.layers.BatchNormalization(momentum=0.0), 1)
    x = tf.constant([[[1.0], [3.0]]])
    np.testing.assert_allclose(layer(x, training=True), [[[-1], [1]]], atol=1e-3)
    np.testing.assert_allclose(layer.wrapped.moving_mean, [2.0], rtol=1e-6)


def test_copies_have_no_weights_in_common():
    net = sequential.Sequential(
        [Wrapper(keras.layers.Dense(2), 1)], input_spec=tf.TensorSpec([3])
    )
    copied = net.copy()
    net.create_variables()
    copied.create_variables()
    assert not {id(v) for v in net.variables} & {id(v) for v in copied.variables}


def test_configuration():
    layer = Wrapper(keras.layers.Dense(2), 1)
    again = Wrapper.from_config(layer.get_config())
    assert (again.inner_rank, again.wrapped.units) == (1, 2)


def test_recurrent_layers_are_refused():
    with pytest.raises(ValueError, match="has method `get_initial_state`"):
        Wrapper(keras.layers.LSTM(2), 1)
