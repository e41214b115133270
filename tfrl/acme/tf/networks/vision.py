"""Torsos for images: the convolutional stack of DQN and the ResNet of IMPALA.

All take images `[..., height, width, channels]` with any number of outer dimensions.
Integers, such as uint8, are scaled to [0, 1]; floats are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import convolutions
from tfrl.networks import utils
from tfrl.networks.construction import recorded_layer
from tfrl.networks.layers import dense, initializers


class _ImageTorso(recorded_layer.RecordedLayer):
    """Base class: folds outer dimensions and scales integers."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the embeddings `[..., n]` of images `[..., height, width, channels]`.

        Raises:
          ValueError: If the inputs have fewer than four dimensions.
        """
        if inputs.shape.rank < 4:
            raise ValueError(
                f"{self.name}: got inputs of shape {inputs.shape}, expected images "
                "[B, height, width, channels]; add a batch dimension, or a last one "
                "for the channel."
            )
        squash = utils.BatchSquash(inputs.shape.rank - 3)
        images = tf.image.convert_image_dtype(
            squash.flatten(inputs), self.compute_dtype
        )
        return squash.unflatten(self._embed(images))

    def _embed(self, images: tf.Tensor) -> tf.Tensor:
        """Returns the embeddings `[B, n]` of floats `[B, height, width, channels]`."""
        raise NotImplementedError


@keras.saving.register_keras_serializable("tfrl")
class AtariTorso(_ImageTorso):
    """The three convolutions of DQN: 32 of 8x8, 64 of 4x4 and 64 of 3x3.

    See Mnih et al., "Human-level control through deep reinforcement learning", 2015.
    Their strides are 4, 2 and 1, and a ReLU follows each. As in Acme, the borders are
    padded, so that 84x84 pixels give 11x11x64 = 7,744 numbers; the paper's 7x7x64 =
    3,136 need `padding="valid"`.
    """

    def __init__(self, padding: str = "same", **kwargs: Any):
        """Creates the layer.

        Args:
          padding: "same" or "valid".
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._convolutions = [
            convolutions.Conv2D(
                filters,
                kernel_size,
                strides,
                padding=padding,
                activation="relu",
                kernel_initializer=initializers.truncated(),
            )
            for filters, kernel_size, strides in ((32, 8, 4), (64, 4, 2), (64, 3, 1))
        ]

    def _embed(self, images: tf.Tensor) -> tf.Tensor:
        return utils.flatten_inner(dense.apply(self._convolutions, images))


@keras.saving.register_keras_serializable("tfrl")
class ResNetTorso(_ImageTorso):
    """The deep residual network of IMPALA: 15 convolutions and a dense layer.

    See Espeholt et al., "IMPALA", 2018, figure 3. Each group is a convolution, a max
    pooling, and blocks `x -> x + conv(relu(conv(relu(x))))`. The last dense layer has
    no activation.
    """

    def __init__(
        self,
        num_channels: Sequence[int] = (16, 32, 32),
        num_blocks: Sequence[int] = (2, 2, 2),
        num_output_hidden: Sequence[int] = (256,),
        conv_shape: int | Sequence[int] = 3,
        conv_stride: int | Sequence[int] = 1,
        pool_size: int | Sequence[int] = 3,
        pool_stride: int | Sequence[int] = 2,
        activation: utils.Activation = "relu",
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          num_channels: The number of channels of each group.
          num_blocks: The number of residual blocks of each group.
          num_output_hidden: The number of units of each dense layer.
          conv_shape: The height and width of the convolutions' kernels.
          conv_stride: The strides of the convolutions.
          pool_size: The height and width of the pooled windows.
          pool_stride: The strides of the pooling.
          activation: The activation of the blocks and between dense layers.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If `num_channels` and `num_blocks` differ in length.
        """
        super().__init__(**kwargs)
        if len(num_channels) != len(num_blocks):
            raise ValueError(
                f"num_channels, num_blocks: got {num_channels} and {num_blocks}, "
                "expected one entry of each for a group; make them equally long."
            )

        def convolution(channels: int) -> keras.layers.Layer:
            return convolutions.Conv2D(
                channels,
                conv_shape,
                conv_stride,
                padding="same",
                kernel_initializer=initializers.truncated(),
            )

        self._activation = keras.activations.get(activation)
        self._groups: list[keras.layers.Layer] = []
        for channels, blocks in zip(num_channels, num_blocks, strict=True):
            self._groups += [
                convolution(channels),
                keras.layers.MaxPooling2D(pool_size, pool_stride, padding="same"),
                *(
                    _ResidualBlock(
                        convolution(channels), convolution(channels), activation
                    )
                    for _ in range(blocks)
                ),
            ]
        self._dense = dense.layers(num_output_hidden, activation=activation)

    def _embed(self, images: tf.Tensor) -> tf.Tensor:
        features = self._activation(dense.apply(self._groups, images))
        return dense.apply(self._dense, utils.flatten_inner(features))


class _ResidualBlock(keras.layers.Layer):
    """Adds two convolutions of the activated inputs to the inputs."""

    def __init__(
        self,
        first: keras.layers.Layer,
        second: keras.layers.Layer,
        activation: utils.Activation,
    ):
        super().__init__()
        self._first, self._second = first, second
        self._activation = keras.activations.get(activation)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        outputs = self._first(self._activation(inputs))
        return inputs + self._second(self._activation(outputs))


@keras.saving.register_keras_serializable("tfrl")
class DeepAtariTorso(_ImageTorso):
    """`ResNetTorso` as in IMPALA's paper, with a ReLU after its dense layer."""

    def __init__(self, **kwargs: Any):
        """Creates the layer.

        Args:
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._resnet = ResNetTorso()

    def _embed(self, images: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(self._resnet(images))


@keras.saving.register_keras_serializable("tfrl")
class DrQTorso(_ImageTorso):
    """The encoder of DrQ-v2: four convolutions of 3x3, with 32 channels each.

    See Yarats et al., "Mastering visual continuous control", 2021. It moves images from
    [0, 1] to [-0.5, 0.5]. As in Acme, the borders are padded, and the convolution with
    stride 2 comes first.
    """

    def __init__(self, activation: utils.Activation = "relu", **kwargs: Any):
        """Creates the layer.

        Args:
          activation: The activation of the convolutions.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        activation = keras.activations.get(activation)
        gain = 2**0.5 if activation is keras.activations.relu else 1.0
        self._convolutions = [
            convolutions.Conv2D(
                32,
                3,
                strides,
                padding="same",
                activation=activation,
                kernel_initializer=keras.initializers.Orthogonal(gain),
            )
            for strides in (2, 1, 1, 1)
        ]

    def _embed(self, images: tf.Tensor) -> tf.Tensor:
        return utils.flatten_inner(dense.apply(self._convolutions, images - 0.5))
