"""Layers of images that are fast in programs that XLA compiles for the CPU.

There, XLA is slow if a convolution has few channels. It computes gradients as
convolutions with a dilated window, for which it has only plain loops: a layer of the
Atari network takes some 20 ms a frame. A product of two matrices computes the same in
less than 1 ms. For the gradients of maxima in windows it has plain loops, too.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import accelerators, internals

# Moving a number to a row of a matrix takes the time of so many multiplications.
_COPIES = 30


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
    """Makes gradient tapes differentiate `convolve` and `pool` in TensorFlow's place.

    For `tf.nn.conv2d` this is for layers of users and of Keras; the gradient of
    `Conv2D` is that of a product already. Outside of a compiled program, or if the
    variables are on an accelerator, it changes nothing.

    Args:
      variables: The variables with respect to which the tape differentiates.
    """
    registry = None
    if accelerators.in_host_program(variables):
        registry = internals.gradient_functions(*_REPLACEMENTS)
    if registry is None:
        yield
        return
    usual = {name: registry[name] for name in _REPLACEMENTS}

    def fast(name: str) -> Callable[..., Sequence[tf.Tensor | None]]:
        def gradient(op: Any, output_gradient: tf.Tensor) -> Sequence[tf.Tensor | None]:
            compute = _REPLACEMENTS[name](op)
            if compute is None:
                return usual[name]["type"](op, output_gradient)
            inputs = list(op.inputs)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = compute(*inputs)
            return tape.gradient(outputs, inputs, output_gradient)

        return gradient

    registry.update({name: {**usual[name], "type": fast(name)} for name in usual})
    try:
        yield
    finally:
        registry.update(usual)


def _as_convolve(op: Any) -> Callable[..., tf.Tensor] | None:
    """Returns `convolve` for an operation, or None if it computes another thing."""
    dilations = op.get_attr("dilations")
    if not (
        _has_usual_layout(op) and set(dilations) == {1} and _can_multiply(*op.inputs)
    ):
        return None
    strides = op.get_attr("strides")[1:3]
    padding = tf.compat.as_str(op.get_attr("padding"))
    return functools.partial(convolve, strides=strides, padding=padding)


def _as_pool(op: Any) -> Callable[..., tf.Tensor] | None:
    """Returns `pool` for an operation, or None if it computes another thing."""
    sizes, strides = op.get_attr("ksize"), op.get_attr("strides")
    [images] = op.inputs
    if not (
        _has_usual_layout(op) and sizes[3] == 1 and images.shape[1:3].is_fully_defined()
    ):
        return None
    padding = tf.compat.as_str(op.get_attr("padding"))
    return functools.partial(
        pool, sizes=sizes[1:3], strides=strides[1:3], padding=padding
    )


def _has_usual_layout(op: Any) -> bool:
    """Whether channels come last, and the padding has a name."""
    return bool(
        tf.compat.as_str(op.get_attr("data_format")) == "NHWC"
        and tf.compat.as_str(op.get_attr("padding")) in ("SAME", "VALID")
    )


# What computes an operation's outputs with fast gradients.
_REPLACEMENTS = {"Conv2D": _as_convolve, "MaxPool": _as_pool}


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

    A block of outputs is computed as one output with more filters: copies of the given
    ones, each moved to its place in the block. The stride is then that of the blocks,
    and a convolution with stride s is one with stride 1 on cells of s x s pixels. For
    each block, the adjacent cells under the filters become one row of a matrix, which
    is multiplied by the matrix of the filters.

    Args:
      images: The inputs, `[B, height, width, channels]`.
      filters: `[filter height, filter width, channels, filters]`.
      strides: The strides of rows and of columns.
      padding: "SAME" or "VALID".

    Returns:
      The outputs, `[B, rows, columns, filters]`.
    """
    channels, depth = filters.shape[2:]
    axes = list(zip(images.shape[1:3], filters.shape[:2], strides, strict=True))
    outputs = [_num_outputs(*axis, padding) for axis in axes]
    sides = _block(axes, outputs, depth)
    blocks = [-(-count // side) for count, side in zip(outputs, sides, strict=True)]
    steps = [stride * side for stride, side in zip(strides, sides, strict=True)]
    filters = _at_each_output(filters, strides, sides)
    sizes = filters.shape[:2]
    spans = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
    cells = [count + span - 1 for count, span in zip(blocks, spans, strict=True)]
    paddings = [
        _cut_or_pad(image, count, size, stride, step * number, padding)
        for (image, size, stride), count, step, number in zip(
            axes, outputs, steps, cells, strict=True
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
    split = tf.reshape(padded, [-1, cells[0], steps[0], cells[1], steps[1], channels])
    inside = steps[0] * steps[1] * channels
    in_cells = tf.reshape(tf.transpose(split, [0, 1, 3, 2, 4, 5]), [-1, *cells, inside])
    beside = [
        in_cells[:, row : row + blocks[0], column : column + blocks[1]]
        for row in range(spans[0])
        for column in range(spans[1])
    ]
    # Zeros for the pixels of the last cells that are beyond the filters.
    beyond = [
        [0, span * step - size]
        for span, size, step in zip(spans, sizes, steps, strict=True)
    ]
    parts = tf.reshape(
        tf.pad(filters, [*beyond, [0, 0], [0, 0]]),
        [spans[0], steps[0], spans[1], steps[1], channels, -1],
    )
    product = tf.matmul(
        tf.reshape(tf.concat(beside, axis=-1), [-1, len(beside) * inside]),
        tf.reshape(tf.transpose(parts, [0, 2, 1, 3, 4, 5]), [-1, filters.shape[3]]),
    )
    in_blocks = tf.reshape(product, [-1, *blocks, *sides, depth])
    rows, columns = (count * side for count, side in zip(blocks, sides, strict=True))
    whole = tf.reshape(
        tf.transpose(in_blocks, [0, 1, 3, 2, 4, 5]), [-1, rows, columns, depth]
    )
    return whole[:, : outputs[0], : outputs[1]]


def _block(
    axes: Sequence[tuple[int, int, int]], outputs: Sequence[int], depth: int
) -> tuple[int, ...]:
    """Returns the rows and columns of outputs that are computed as one.

    In larger blocks the rows of the matrix overlap less, so fewer numbers are copied,
    and more are multiplied by zeros.

    Args:
      axes: For both axes, the pixels of the image and of a filter, and the stride.
      outputs: The rows and the columns of all outputs.
      depth: The number of filters.
    """

    def cost(sides: tuple[int, ...]) -> float:
        each = depth + _COPIES / math.prod(sides)
        for (_, size, stride), count, side in zip(axes, outputs, sides, strict=True):
            step = stride * side
            covered = -(-(size - stride + step) // step) * step
            each *= covered * -(-count // side) * side
        return each

    # Filters overlap in so many outputs.
    overlaps = [max((size - stride) // stride, 1) for _, size, stride in axes]
    return min(itertools.product(*(range(1, x + 1) for x in overlaps)), key=cost)


def _at_each_output(
    filters: tf.Tensor, strides: Sequence[int], sides: Sequence[int]
) -> tf.Tensor:
    """Returns filters that are moved to each output of a block, side by side.

    Args:
      filters: `[filter height, filter width, channels, filters]`.
      strides: The strides of rows and of columns.
      sides: The rows and columns of a block.

    Returns:
      The filters of a block, `[height, width, channels, rows * columns * filters]`.
    """
    for axis, (stride, side) in enumerate(zip(strides, sides, strict=True)):
        moved = []
        for place in range(side):
            paddings = [[0, 0]] * 4
            paddings[axis] = [stride * place, stride * (side - 1 - place)]
            moved.append(tf.pad(filters, paddings + [[0, 0]] * axis))
        filters = tf.stack(moved, axis=3 + axis)
    return tf.reshape(filters, [*filters.shape[:3], -1])


def pool(
    images: tf.Tensor, sizes: Sequence[int], strides: Sequence[int], padding: str
) -> tf.Tensor:
    """Returns `tf.nn.max_pool2d`, computed as maxima of whole slices.

    Where several numbers of a window are the largest, the gradient is that of the first
    row's and column's, as in TensorFlow.

    Args:
      images: The inputs, `[B, height, width, channels]`.
      sizes: The rows and columns of a window.
      strides: The rows and columns from a window to the next.
      padding: "SAME" or "VALID".

    Returns:
      The largest numbers, `[B, rows, columns, channels]`.
    """
    for axis in (2, 1):
        image, size, stride = images.shape[axis], sizes[axis - 1], strides[axis - 1]
        count = _num_outputs(image, size, stride, padding)
        last = (count - 1) * stride
        paddings = [[0, 0]] * 4
        low, high = _cut_or_pad(image, count, size, stride, last + size, padding)
        paddings[axis] = [low, max(high, 0)]
        padded = tf.pad(images, paddings, constant_values=images.dtype.min)
        before = (slice(None),) * axis
        images = functools.reduce(
            tf.maximum,
            [
                padded[(*before, slice(place, place + last + 1, stride))]
                for place in range(size)
            ],
        )
    return images


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
