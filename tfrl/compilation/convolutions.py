"""A gradient of convolutions that is fast in programs that XLA compiles for the CPU.

On the CPU, XLA computes the gradient with respect to the filters as a convolution with
a dilated window, for which it has only plain loops: a layer of the Atari network takes
some 20 ms a frame. A product of two matrices computes the same gradient in less than 1
ms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import accelerators, internals


@contextlib.contextmanager
def fast_gradients(variables: Sequence[Any]) -> Iterator[None]:
    """Makes gradient tapes use `filter_gradient` where it is faster.

    Outside of a compiled program, or if the variables are on an accelerator, it changes
    nothing.

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

    def gradient(op: Any, output_gradient: tf.Tensor) -> list[tf.Tensor | None]:
        of_images, of_filters = usual(op, output_gradient)
        if _is_plain(op):
            of_filters = filter_gradient(
                op.inputs[0],
                output_gradient,
                op.inputs[1].shape,
                op.get_attr("strides")[1:3],
                tf.compat.as_str(op.get_attr("padding")),
            )
        return [of_images, of_filters]

    registry["Conv2D"] = {**entry, "type": gradient}
    try:
        yield
    finally:
        registry["Conv2D"] = entry


def _is_plain(op: Any) -> bool:
    """Whether `filter_gradient` can differentiate the convolution."""
    images, filters = op.inputs[0].shape, op.inputs[1].shape
    return bool(
        tf.compat.as_str(op.get_attr("data_format")) == "NHWC"
        and tf.compat.as_str(op.get_attr("padding")) in ("SAME", "VALID")
        and all(dilation == 1 for dilation in op.get_attr("dilations"))
        and images[1:].is_fully_defined()
        and filters.is_fully_defined()
        and images[3] == filters[2]
    )


def filter_gradient(
    images: tf.Tensor,
    output_gradient: tf.Tensor,
    filter_shape: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> tf.Tensor:
    """Returns the gradient of `tf.nn.conv2d` with respect to its filters.

    A convolution with stride s is a convolution with stride 1 on blocks of s x s
    pixels. For each output, the adjacent blocks under the filter become one row of a
    matrix. The gradient of the filters is then a product of this matrix and the matrix
    of the outputs' gradients.

    Args:
      images: The inputs, `[B, height, width, channels]`.
      output_gradient: The gradient with respect to the outputs, `[B, rows, columns,
        filters]`.
      filter_shape: `[filter height, filter width, channels, filters]`.
      strides: The strides of rows and of columns.
      padding: "SAME" or "VALID".

    Returns:
      The gradient, of shape `filter_shape`.
    """
    sizes = filter_shape[:2]
    channels, filters = filter_shape[2:]
    outputs = output_gradient.shape[1:3]
    spans = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
    blocks = [count + span - 1 for count, span in zip(outputs, spans, strict=True)]
    paddings = [
        _cut_or_pad(image, count, size, stride, stride * number, padding)
        for image, count, size, stride, number in zip(
            images.shape[1:3], outputs, sizes, strides, blocks, strict=True
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
    product = tf.matmul(
        tf.reshape(tf.concat(beside, axis=-1), [-1, len(beside) * inside]),
        tf.reshape(output_gradient, [-1, filters]),
        transpose_a=True,
    )
    parts = tf.reshape(product, [*spans, *strides, channels, filters])
    whole = tf.reshape(
        tf.transpose(parts, [0, 2, 1, 3, 4, 5]),
        [spans[0] * strides[0], spans[1] * strides[1], channels, filters],
    )
    return whole[: sizes[0], : sizes[1]]


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
