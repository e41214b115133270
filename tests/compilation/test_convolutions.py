"""Convolutions, and their gradients, in compiled programs on the CPU."""

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
        # Blocks of 4 by 4 outputs, 1 by 2, 2 by 1 and 1 by 1, and some that are cut.
        ((16, 12, 3), (5, 5, 3, 2), (1, 1), "SAME"),
        ((10, 10, 4), (3, 3, 4, 16), (1, 1), "SAME"),
        ((9, 9, 2), (6, 4, 2, 3), (2, 2), "VALID"),
        ((9, 7, 2), (5, 3, 2, 20), (1, 1), "VALID"),
        ((11, 13, 3), (5, 5, 3, 2), (1, 1), "SAME"),
    ],
)
def test_the_product_and_its_gradients_are_tensorflows(
    image, filters, strides, padding
):
    rng = np.random.default_rng(0)
    inputs = [
        tf.constant(rng.normal(size=shape), tf.float32)
        for shape in ((3, *image), filters)
    ]

    def outputs_and_gradients(convolve):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = convolve(*inputs, strides, padding)
            weights = np.random.default_rng(1).normal(size=outputs.shape)
            loss = tf.reduce_sum(outputs * weights.astype(np.float32))
        return [outputs, *tape.gradient(loss, inputs)]

    for found, expected in zip(
        outputs_and_gradients(convolutions.convolve),
        outputs_and_gradients(tf.nn.conv2d),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("image", "size", "stride", "padding"),
    [
        ((8, 6, 3), 2, 2, "VALID"),
        ((7, 9, 2), 2, 2, "SAME"),
        ((7, 9, 2), 3, 2, "SAME"),
        ((9, 8, 2), 3, 2, "VALID"),
        ((5, 5, 1), 2, 1, "SAME"),
        ((7, 7, 1), 2, 3, "VALID"),
    ],
)
def test_maxima_and_their_gradients_are_tensorflows(image, size, stride, padding):
    rng = np.random.default_rng(0)
    # Of few numbers, so that several are the largest.
    images = tf.constant(rng.integers(-2, 3, size=(3, *image)), tf.float32)
    sides, strides = (size, size), (stride, stride)
    found = []
    for pool in (convolutions.pool, tf.nn.max_pool2d):
        with tf.GradientTape() as tape:
            tape.watch(images)
            outputs = pool(images, sides, strides, padding)
            weights = np.random.default_rng(1).normal(size=outputs.shape)
            loss = tf.reduce_sum(outputs * weights.astype(np.float32))
        found.append((outputs, tape.gradient(loss, images)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_blocks_are_larger_for_fewer_filters():
    def block(size, stride, depth):
        return convolutions._block([(64, size, stride)] * 2, [64 // stride] * 2, depth)

    assert block(5, 1, 3) == (4, 4)
    assert block(5, 1, 16) == (2, 2)
    assert block(3, 1, 16) == (1, 2)
    assert block(3, 1, 64) == block(8, 4, 32) == block(4, 2, 64) == (1, 1)


def make_gradient(layer, jit_compile):
    """Makes a function that returns the gradients of a layer's squares."""

    def differentiate(images):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(images)))
        with convolutions.fast_gradients(layer.trainable_variables):
            return tape.gradient(loss, layer.trainable_variables)

    return tf.function(differentiate, autograph=False, jit_compile=jit_compile)


def num_operations(function, images, name="convolution"):
    program = function.experimental_get_compiler_ir(images)(stage="optimized_hlo")
    return program.count(f" {name}(")


@pytest.mark.cpu
def test_a_compiled_program_has_no_dilated_convolution():
    images = tf.constant(np.random.default_rng(1).normal(size=(2, 9, 9, 3)), tf.float32)
    layer = keras.layers.Conv2D(4, 3, strides=2, kernel_initializer="glorot_normal")
    layer.build(images.shape)
    compiled = make_gradient(layer, jit_compile=True)
    plain = make_gradient(layer, jit_compile=False)
    for found, expected in zip(compiled(images), plain(images), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert num_operations(compiled, images) == 1  # The layer itself.


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


@pytest.mark.cpu
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_a_layer_is_a_product_in_a_compiled_program_alone(padding):
    images = tf.constant(np.random.default_rng(3).normal(size=(2, 9, 9, 3)), tf.float32)
    layer = convolutions.Conv2D(4, 3, padding=padding)
    layer.build(images.shape)
    compiled = make_gradient(layer, jit_compile=True)
    plain = make_gradient(layer, jit_compile=False)
    for found, expected in zip(compiled(images), plain(images), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert num_operations(compiled, images) == 0
    types = [
        op.type for op in plain.get_concrete_function(images).graph.get_operations()
    ]
    assert types.count("Conv2D") == 1


def test_a_layer_is_read_from_its_configuration():
    layer = convolutions.Conv2D(4, 3, strides=2)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert type(again) is convolutions.Conv2D
    assert again.strides == (2, 2)


@pytest.mark.cpu
def test_other_layers_are_keras_own_in_a_compiled_program():
    images = tf.constant(np.random.default_rng(4).normal(size=(2, 9, 9, 3)), tf.float32)
    for layer in (
        convolutions.Conv2D(4, 3, dilation_rate=2),
        convolutions.Conv2D(6, 3, groups=3),
    ):
        layer.build(images.shape)
        found = tf.function(layer, autograph=False, jit_compile=True)(images)
        np.testing.assert_allclose(found, layer(images), rtol=1e-4, atol=1e-5)


@pytest.mark.cpu
def test_keras_maxima_have_a_fast_gradient_in_a_compiled_program_alone():
    images = tf.constant(np.random.default_rng(5).normal(size=(2, 8, 8, 3)), tf.float32)
    layer = keras.Sequential(
        [keras.layers.Conv2D(4, 3), keras.layers.MaxPooling2D(3, 2, padding="same")]
    )
    layer.build(images.shape)
    compiled = make_gradient(layer, jit_compile=True)
    plain = make_gradient(layer, jit_compile=False)
    for found, expected in zip(compiled(images), plain(images), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert num_operations(compiled, images, "select-and-scatter") == 0
    types = {
        op.type for op in plain.get_concrete_function(images).graph.get_operations()
    }
    assert "MaxPoolGrad" in types
