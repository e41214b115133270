"""Checks of the shapes of a loss's arguments.

The checks use static shapes alone, while Python runs or a function is traced, and add
no operation to a graph. A size that is not known statically is not checked. An argument
is a tensor, a variable, an array, a number, or a `tf.TensorShape`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def shape_of(value: Any) -> tf.TensorShape:
    """Returns the static shape of an argument; a shape is returned as it is."""
    if isinstance(value, tf.TensorShape):
        return value
    if isinstance(value, float | int):
        return tf.TensorShape([])
    if not hasattr(value, "shape"):
        value = tf.convert_to_tensor(value)
    return tf.TensorShape(value.shape)


def check_ranks(ranks: tuple[int, ...], **tensors: Any) -> None:
    """Raises ValueError unless every tensor has one of `ranks`."""
    for name, tensor in tensors.items():
        shape = shape_of(tensor)
        if shape.rank not in ranks:
            raise ValueError(
                f"{name}: got rank {shape.rank} (shape {shape}), "
                f"expected rank {' or '.join(map(str, ranks))}; add or remove outer "
                "dimensions."
            )


def check_same_shape(**tensors: Any) -> None:
    """Raises ValueError if the shapes of the tensors are known to differ.

    Without this check, TensorFlow would broadcast `[B, 1]` and `[B]` to `[B, B]`.
    """
    (first_name, first), *others = tensors.items()
    expected = shape_of(first)
    for name, tensor in others:
        shape = shape_of(tensor)
        if not expected.is_compatible_with(shape):
            raise ValueError(
                f"{name}: got shape {shape}, expected {expected} as {first_name} has; "
                "reshape one of them, nothing is broadcast."
            )


def check_scalars(**numbers: Any) -> None:
    """Raises ValueError if a number is known not to be a scalar; None is allowed."""
    for name, number in numbers.items():
        if number is None:
            continue
        shape = shape_of(number)
        if shape.rank not in (0, None):
            raise ValueError(
                f"{name}: got shape {shape}, expected a number or a scalar tensor, "
                "shape (); give one number for all examples."
            )


def check_scalar_or_same_shape(**tensors: Any) -> None:
    """Checks that tensors have the shape of the first one, or are scalars.

    Raises:
      ValueError: A tensor has another shape.
    """
    (first_name, first), *others = tensors.items()
    for name, tensor in others:
        if shape_of(tensor).rank != 0:
            check_same_shape(**{first_name: first, name: tensor})


def broadcast_shape(**tensors: Any) -> tf.TensorShape:
    """Returns the shape to which the tensors broadcast, or raises ValueError."""
    (first_name, first), *others = tensors.items()
    result = shape_of(first)
    for name, tensor in others:
        shape = shape_of(tensor)
        try:
            result = tf.broadcast_static_shape(result, shape)
        except ValueError:
            raise ValueError(
                f"{name}: got shape {shape}, expected one that broadcasts with "
                f"{result} of {first_name}; reshape one of them."
            ) from None
    return result


def check_broadcast(**tensors: Any) -> None:
    """Raises ValueError if a tensor is known not to broadcast to the first one."""
    (first_name, first), *others = tensors.items()
    target = shape_of(first)
    for name, tensor in others:
        result = broadcast_shape(**{first_name: first, name: tensor})
        if not result.is_compatible_with(target):
            raise ValueError(
                f"{name}: got shape {shape_of(tensor)}, expected one that broadcasts "
                f"to {target} of {first_name}; reshape one of them."
            )
