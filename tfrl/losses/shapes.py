"""Checks of the shapes of a loss's arguments."""

from __future__ import annotations

import tensorflow as tf


def check_ranks(ranks: tuple[int, ...], **tensors: tf.Tensor) -> None:
    """Raises ValueError unless every tensor has one of `ranks`."""
    for name, tensor in tensors.items():
        if tensor.shape.rank not in ranks:
            raise ValueError(
                f"{name}: got rank {tensor.shape.rank} (shape {tensor.shape}), "
                f"expected rank {' or '.join(map(str, ranks))}; add or remove outer "
                "dimensions."
            )


def check_same_shape(**tensors: tf.Tensor) -> None:
    """Raises ValueError if the shapes of the tensors are known to differ.

    Without this check, TensorFlow would broadcast `[B, 1]` and `[B]` to `[B, B]`.
    """
    (first_name, first), *others = tensors.items()
    for name, tensor in others:
        if not first.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"{name}: got shape {tensor.shape}, expected {first.shape} as "
                f"{first_name} has; reshape one of them, nothing is broadcast."
            )
