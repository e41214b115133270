"""The gradient of convolutions in compiled programs on the CPU."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import convolutions


@pytest.mark.parametrize(
    ("image", "filters", "strides", "padding"),
    [
        ((20, 20, 4), (8, 8, 4, 3), (4, 4), "VALID"),
        ((9, 9, 2), (4, 4, 2, 3), (2, 2), "VALID"),  # A row and a column are unused.
        ((7, 7, 2), (3, 3, 2, 3), (1, 1), "VALID"),
        ((10, 7, 3), (5, 3, 3, 2), (3, 2), "SAME"),
        ((6, 5, 1), (3, 4, 1, 2), (1, 1), "SAME"),
        ((8, 8, 1), (2, 2, 1, 2), (4, 3), "VALID"),  # Strides wider than the filters.
        ((8, 7, 1), (2, 1, 1, 2), (3, 3), "SAME"),
        ((5, 5, 2), (1, 1, 2, 2), (1, 1), "VALID"),
    ],
)
def test_filter_gradient_is_tensorflows(image, filters, strides, padding):
    rng = np.random.default_rng(0)
    images = tf.constant(rng.normal(size=(3, *image)), tf.float32)
    outputs = tf.nn.conv2d(images, tf.zeros(filters), strides, padding)
    gradient = tf.constant(rng.normal(size=outputs.shape), tf.float32)
    expected = tf.raw_ops.Conv2DBackpropFilter(
        input=images,
        filter_sizes=filters,
        out_backprop=gradient,
        strides=[1, *strides, 1],
        padding=padding,
    )
    found = convolutions.filter_gradient(images, gradient, filters, strides, padding)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def make_gradient(layer, jit_compile):
    """Makes a function that returns the gradients of a layer's squares."""

    def differentiate(images):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(images)))
        with convolutions.fast_gradients(layer.trainable_variables):
            return tape.gradient(loss, layer.trainable_variables)

    return tf.function(differentiate, autograph=False, jit_compile=jit_compile)


def num_convolutions(function, images):
    program = function.experimental_get_compiler_ir(images)(stage="optimized_hlo")
    return program.count(" convolution(")


@pytest.mark.cpu
def test_a_compiled_program_has_no_dilated_convolution():
    images = tf.constant(np.random.default_rng(1).normal(size=(2, 9, 9, 3)), tf.float32)
    layer = keras.layers.Conv2D(4, 3, strides=2, kernel_initializer="glorot_normal")
    layer.build(images.shape)
    compiled = make_gradient(layer, jit_compile=True)
    plain = make_gradient(layer, jit_compile=False)
    for found, expected in zip(compiled(images), plain(images), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert num_convolutions(compiled, images) == 1  # The layer itself.


def test_dilated_and_grouped_convolutions_have_the_usual_gradient():
    images = tf.constant(np.random.default_rng(2).normal(size=(2, 9, 9, 4)), tf.float32)
    for layer in (
        keras.layers.Conv2D(4, 3, dilation_rate=2),
        keras.layers.Conv2D(4, 3, groups=2),
    ):
        layer.build(images.shape)
        compiled = make_gradient(layer, jit_compile=True)
        plain = make_gradient(layer, jit_compile=False)
        for found, expected in zip(compiled(images), plain(images), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
