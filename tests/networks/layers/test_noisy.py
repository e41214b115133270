"""The statistics of NoisyDense."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import NoisyDense


def built(units=3, size=4, **kwargs):
    layer = NoisyDense(units, seed=1, **kwargs)
    layer(tf.zeros([1, size]))
    return layer


def weights_of(layer):
    names = ("kernel", "bias", "kernel_stddev", "bias_stddev")
    by_name = {v.name: v.numpy() for v in layer.trainable_variables}
    return [by_name[name] for name in names]


def test_the_initial_weights_are_the_papers():
    kernel, bias, kernel_stddev, bias_stddev = weights_of(built(200, 100))
    for mean in (kernel, bias):
        assert abs(mean).max() <= 0.1
        # Uniform on [-0.1, 0.1].
        np.testing.assert_allclose(mean.std(), 0.1 / 3**0.5, rtol=0.1)
    np.testing.assert_allclose(kernel_stddev, 0.05, rtol=1e-6)
    np.testing.assert_allclose(bias_stddev, 0.05, rtol=1e-6)


def test_without_training_it_is_a_dense_layer():
    layer = built(activation="relu")
    kernel, bias, *_ = weights_of(layer)
    x = np.random.default_rng(0).normal(size=[5, 4]).astype("f4")
    expected = np.maximum(x @ kernel + bias, 0)
    for _ in range(2):
        np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


def test_the_noise_of_the_weights_has_rank_one_and_the_scale_of_its_paper():
    layer = built(3, 4)
    # The outputs of an input of zeros and of unit vectors: the biases and the kernel.
    inputs = tf.concat([tf.zeros([1, 4]), tf.eye(4)], axis=0)
    draw = tf.function(lambda: layer(inputs, training=True))
    outputs = np.array([draw() for _ in range(400)])
    biases, kernels = outputs[:, 0], outputs[:, 1:] - outputs[:, :1]
    kernel, bias, kernel_stddev, bias_stddev = weights_of(layer)
    noise = (kernels - kernel) / kernel_stddev
    of_bias = (biases - bias) / bias_stddev
    # f(e) has mean 0, and the mean of its square is that of |e|, sqrt(2 / pi).
    variance = (2 / np.pi) ** 0.5
    np.testing.assert_allclose(noise.mean(), 0, atol=0.05)
    np.testing.assert_allclose(of_bias.mean(), 0, atol=0.08)
    np.testing.assert_allclose(of_bias.var(), variance, rtol=0.1)
    np.testing.assert_allclose(noise.var(), variance**2, rtol=0.1)
    assert (np.linalg.matrix_rank(noise, tol=1e-3) == 1).all()


def test_all_examples_have_the_same_noise():
    layer = built()
    outputs = layer(tf.ones([6, 4]), training=True).numpy()
    np.testing.assert_allclose(outputs, outputs[:1].repeat(6, axis=0), rtol=1e-6)


def test_the_seed_decides_the_noise_in_plain_and_compiled_graphs():
    runs = []
    for jit_compile in (False, True):
        layer = built()
        apply = tf.function(
            lambda x, layer=layer: layer(x, training=True), jit_compile=jit_compile
        )
        runs.append([apply(tf.ones([1, 4])).numpy() for _ in range(2)])
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-5)
    assert not np.allclose(runs[0][0], runs[0][1])


def test_all_weights_are_trained():
    layer = built()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.ones([2, 4]), training=True) ** 2)
    variables = [v.value for v in layer.trainable_variables]
    assert len(variables) == 4
    assert all(np.any(g) for g in tape.gradient(loss, variables))


def test_a_copy_has_the_same_arguments():
    layer = NoisyDense(3, "relu", initial_stddev=0.1)
    copied = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    copied(tf.zeros([1, 4]))
    np.testing.assert_allclose(weights_of(copied)[3], 0.05, rtol=1e-6)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="units"):
        NoisyDense(0)
    with pytest.raises(ValueError, match="initial_stddev"):
        NoisyDense(3, initial_stddev=-1.0)
