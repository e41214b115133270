"""Convolutions that are fast in programs that XLA compiles for the CPU.

There, XLA is slow if a convolution has few channels. It computes gradients as
convolutions with a dilated window, for which it has only plain loops: a layer of the
Atari network takes some 20 ms a frame. A product of two matrices computes the same in
less than 1 ms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import accelerators, internals


@keras.saving.register_keras_serializable("tfrl")
class Conv2D(keras.layers.Conv2D):
    """Keras's layer, which is `convolve` in programs that XLA compiles for the CPU."""

    def convolution_op(self, inputs: tf.Tensor, kernel: Any) -> tf.Tensor:
        """Returns the outputs without the bias, as Keras's layer does."""
        if (
            accelerators.in_host_program([self._kernel])
            and self.data_format == "channels_last"
            and self.padding in ("same", "valid")
            and set(self.dilation_rate) == {1}
            and _can_multiply(inputs, kernel)
        ):
            filters = tf.convert_to_tensor(kernel)
            return convolve(inputs, filters, self.strides, self.padding.upper())
        return super().convolution_op(inputs, kernel)


@contextlib.contextmanager
def fast_gradients(variables: Sequence[Any]) -> Iterator[None]:
    """Makes gradient tapes differentiate `convolve` in place of `tf.nn.conv2d`.

    This is for layers of users and of Keras; the gradient of `Conv2D` is that of a
    product already. Outside of a compiled program, or if the variables are on an
    accelerator, it changes nothing.

    Args:
      variables: The variables with respect to which the tape differentiates.
    """
    registry = None
    if accelerators.in_host_program(variables):
        registry = internals.gradient_functions()
    if registry is None:
        yield
        return
    entry = registry["Conv2D"]
    usual = entry["type"]

    def gradient(op: Any, output_gradient: tf.Tensor) -> Sequence[tf.Tensor | None]:
        if not _is_plain(op):
            return usual(op, output_gradient)
        images, filters = op.inputs
        with tf.GradientTape() as tape:
            tape.watch([images, filters])
            strides = op.get_attr("strides")[1:3]
            padding = tf.compat.as_str(op.get_attr("padding"))
            outputs = convolve(images, filters, strides, padding)
        return tape.gradient(outputs, [images, filters], output_gradient)

    registry["Conv2D"] = {**entry, "type": gradient}
    try:
        yield
    finally:
        registry["Conv2D"] = entry


def _is_plain(op: Any) -> bool:
    """Whether `convolve` computes the convolution."""
    return bool(
        tf.compat.as_str(op.get_attr("data_format")) == "NHWC"
        and tf.compat.as_str(op.get_attr("padding")) in ("SAME", "VALID")
        and all(dilation == 1 for dilation in op.get_attr("dilations"))
        and _can_multiply(*op.inputs)
    )


def _can_multiply(images: tf.Tensor, filters: Any) -> bool:
    """Whether the shapes are known, and each filter has all channels of the images."""
    image_shape, filter_shape = map(tf.TensorShape, (images.shape, filters.shape))
    return bool(
        image_shape[1:].is_fully_defined()
        and filter_shape.is_fully_defined()
        and image_shape[3] == filter_shape[2]
    )


def convolve(
    images: tf.Tensor, filters: tf.Tensor, strides: Sequence[int], padding: str
) -> tf.Tensor:
    """Returns `tf.nn.conv2d`, computed as a product of two matrices.

    A convolution with stride s is a convolution with stride 1 on blocks of s x s
    pixels. For each output, the adjacent blocks under the filter become one row of a
    matrix, which is multiplied by the matrix of the filters.

    Args:
      images: The inputs, `[B, height, width, channels]`.
      filters: `[filter height, filter width, channels, filters]`.
      strides: The strides of rows and of columns.
      padding: "SAME" or "VALID".

    Returns:
      The outputs, `[B, rows, columns, filters]`.
    """
    sizes, (channels, depth) = filters.shape[:2], filters.shape[2:]
    pairs = list(zip(images.shape[1:3], sizes, strides, strict=True))
    outputs = [_num_outputs(*pair, padding) for pair in pairs]
    spans = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
    blocks = [count + span - 1 for count, span in zip(outputs, spans, strict=True)]
    paddings = [
        _cut_or_pad(image, count, size, stride, stride * number, padding)
        for (image, size, stride), count, number in zip(
            pairs, outputs, blocks, strict=True
        )
    ]
    kept = images[
        :,
        : images.shape[1] + min(paddings[0][1], 0),
        : images.shape[2] + min(paddings[1][1], 0),
    ]
    padded = tf.pad(
        kept, [[0, 0], *([low, max(high, 0)] for low, high in paddings), [0, 0]]
    )
    split = tf.reshape(
        padded, [-1, blocks[0], strides[0], blocks[1], strides[1], channels]
    )
    inside = strides[0] * strides[1] * channels
    in_blocks = tf.reshape(
        tf.transpose(split, [0, 1, 3, 2, 4, 5]), [-1, *blocks, inside]
    )
    beside = [
        in_blocks[:, row : row + outputs[0], column : column + outputs[1]]
        for row in range(spans[0])
        for column in range(spans[1])
    ]
    # Zeros for the pixels of the last blocks that are beyond the filter.
    beyond = [
        [0, span * stride - size]
        for span, size, stride in zip(spans, sizes, strides, strict=True)
    ]
    parts = tf.reshape(
        tf.pad(filters, [*beyond, [0, 0], [0, 0]]),
        [spans[0], strides[0], spans[1], strides[1], channels, depth],
    )
    product = tf.matmul(
        tf.reshape(tf.concat(beside, axis=-1), [-1, len(beside) * inside]),
        tf.reshape(tf.transpose(parts, [0, 2, 1, 3, 4, 5]), [-1, depth]),
    )
    return tf.reshape(product, [-1, *outputs, depth])


def _num_outputs(image: int, size: int, stride: int, padding: str) -> int:
    """Returns the number of outputs along one axis."""
    return -(-(image if padding == "SAME" else image - size + 1) // stride)


def _cut_or_pad(
    image: int, outputs: int, size: int, stride: int, wanted: int, padding: str
) -> tuple[int, int]:
    """Returns the padding before and after an image, along one axis; negative to cut.

    Args:
      image: The pixels of the image.
      outputs: The number of outputs.
      size: The pixels of a filter.
      stride: The pixels between outputs.
      wanted: The pixels after padding and cutting.
      padding: "SAME" or "VALID".
    """
    low = 0
    if padding == "SAME":
        low = max((outputs - 1) * stride + size - image, 0) // 2
    return low, wanted - low - image
