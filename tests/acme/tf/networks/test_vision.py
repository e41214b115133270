"""Torsos for images: sizes that the papers state, and the residual sums."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import vision

FRAMES = tf.zeros([2, 84, 84, 4], tf.uint8)
# Kernels and biases of the convolutions of DQN: 8x8x4x32, 4x4x32x64, 3x3x64x64.
DQN_PARAMETERS = (8192 + 32) + (32768 + 64) + (36864 + 64)


@pytest.mark.parametrize(("padding", "size"), [("same", 11), ("valid", 7)])
def test_atari_torso_has_the_sizes_of_dqn(padding, size):
    torso = vision.AtariTorso(padding=padding)
    assert torso(FRAMES).shape == [2, size * size * 64]
    assert torso.count_params() == DQN_PARAMETERS


def test_resnet_torso_has_the_sizes_of_impala():
    torso = vision.ResNetTorso()
    assert torso(FRAMES).shape == [2, 256]
    convolutions = [w.shape for w in torso.get_weights() if w.ndim == 4]
    assert len(convolutions) == 15
    expected = 0
    for inputs, outputs in ((4, 16), (16, 32), (32, 32)):
        expected += 9 * inputs * outputs + outputs
        expected += 4 * (9 * outputs * outputs + outputs)
    # Three poolings make 42, 21 and 11 pixels of 84.
    assert torso.count_params() == expected + 11 * 11 * 32 * 256 + 256


def test_blocks_add_to_their_inputs():
    """With all kernels but the first 0, the pooled first convolution is left."""
    torso = vision.ResNetTorso([1], [2], [], conv_shape=1)
    images = tf.constant(np.arange(16.0).reshape(1, 4, 4, 1), tf.float32)
    torso(images)
    weights = torso.get_weights()
    torso.set_weights([np.ones_like(weights[0]), *map(np.zeros_like, weights[1:])])
    # Windows of 3x3 at every second pixel, padded at the end.
    np.testing.assert_array_equal(torso(images), [[10, 11, 14, 15]])


def test_deep_atari_torso_ends_in_a_relu():
    torso = vision.DeepAtariTorso()
    noise = np.random.default_rng(0).normal(size=[3, 16, 16, 1]).astype(np.float32)
    embeddings = torso(noise).numpy()
    assert embeddings.shape == (3, 256)
    assert embeddings.min() == 0 < embeddings.max()


def test_drq_torso_is_four_convolutions_of_centered_images():
    torso = vision.DrQTorso()
    assert torso(FRAMES).shape == [2, 42 * 42 * 32]
    sizes = [w.shape for w in torso.get_weights() if w.ndim == 4]
    assert sizes == [(3, 3, 4, 32)] + [(3, 3, 32, 32)] * 3
    middle = tf.fill([1, 8, 8, 4], 0.5)
    np.testing.assert_array_equal(torso(middle), np.zeros([1, 4 * 4 * 32]))
    # Orthogonal kernels, of the gain of a ReLU.
    kernel = torso.get_weights()[2].reshape(-1, 32)
    np.testing.assert_allclose(kernel.T @ kernel, 2 * np.eye(32), atol=1e-5)


def test_integers_are_scaled_to_one_and_sequences_are_folded():
    torso = vision.AtariTorso()
    pixels = np.random.default_rng(0).integers(0, 256, [2, 3, 16, 16, 1], np.uint8)
    outputs = torso(pixels)
    assert outputs.shape == [2, 3, 2 * 2 * 64]
    alone = torso((pixels[:, 1] / 255).astype(np.float32))
    np.testing.assert_allclose(outputs[:, 1], alone, rtol=1e-4, atol=1e-5)


def test_kernels_have_the_variance_of_sonnets():
    torso = vision.AtariTorso()
    torso(tf.zeros([1, 8, 8, 4]))
    kernel = torso.get_weights()[0]
    # A normal number cut off at two deviations has 0.8796 of the deviation.
    deviation = 1 / np.sqrt(8 * 8 * 4)
    np.testing.assert_allclose(kernel.std(), 0.8796 * deviation, rtol=0.03)
    assert np.abs(kernel).max() < 2 * deviation


def test_images_without_a_batch_are_an_error():
    with pytest.raises(ValueError, match=r"shape \(84, 84, 4\), expected images"):
        vision.AtariTorso()(FRAMES[0])
    with pytest.raises(ValueError, match="make them equally long"):
        vision.ResNetTorso(num_blocks=(2, 2))
