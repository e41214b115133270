import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import BiasLayer, PermanentVariableRateDropout


def test_bias_is_added():
    layer = BiasLayer(keras.initializers.Constant(2.0))
    np.testing.assert_array_equal(layer(tf.ones([3, 2])), np.full([3, 2], 3.0))
    assert layer.bias.shape == (2,)


def test_bias_of_scalars_is_one_number():
    layer = BiasLayer("ones")
    np.testing.assert_array_equal(layer(tf.zeros([3])), [1.0, 1.0, 1.0])
    assert layer.bias.shape == (1,)


def test_bias_layer_copies_from_its_configuration():
    layer = BiasLayer(keras.initializers.Constant(2.0))
    copied = BiasLayer.from_config(layer.get_config())
    np.testing.assert_array_equal(copied(tf.zeros([1, 1])), [[2.0]])


def test_dropout_scales_what_it_keeps():
    layer = PermanentVariableRateDropout(0.25, seed=1)
    output = layer(tf.ones([2000]), training=True).numpy()
    np.testing.assert_allclose(np.unique(output), [0.0, 1 / 0.75], rtol=1e-6)
    np.testing.assert_allclose(np.mean(output == 0), 0.25, atol=0.04)


def test_dropout_is_off_outside_training_unless_permanent():
    ones = tf.ones([100])
    np.testing.assert_array_equal(PermanentVariableRateDropout(0.5)(ones), ones)
    assert np.any(PermanentVariableRateDropout(0.5, permanent=True)(ones) == 0)


def test_dropout_rate_can_change():
    rate = tf.Variable(0.0)
    layer = PermanentVariableRateDropout(lambda: rate, permanent=True, seed=1)
    drop = tf.function(lambda x: layer(x))
    assert not np.any(drop(tf.ones([100])) == 0)
    rate.assign(0.9)
    assert np.mean(drop(tf.ones([100])) == 0) > 0.7


def test_dropout_noise_shape_is_shared():
    layer = PermanentVariableRateDropout(0.5, noise_shape=(None, 1), seed=1)
    output = layer(tf.ones([50, 3]), training=True).numpy()
    np.testing.assert_array_equal(output, np.repeat(output[:, :1], 3, axis=1))


def test_dropout_refuses_a_rate_that_is_none():
    with pytest.raises(ValueError, match=r"rate: got 1, expected a number in \[0, 1\)"):
        PermanentVariableRateDropout(1)
