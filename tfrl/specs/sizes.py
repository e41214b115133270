"""Checks that the arrays of a nest of specs have elements."""

from __future__ import annotations

from typing import Any

import tree


def check_not_empty(specs: Any, argument: str) -> None:
    """Checks that no array has an axis of length 0.

    TensorFlow's matrix products end the process if they get such an array.

    Args:
      specs: A nest of array specs or tensor specs; other leaves are not checked.
      argument: The name of the nest, for the message.

    Raises:
      ValueError: If there is such a spec; the message has its path and its shape.
    """
    for path, spec in tree.flatten_with_path(specs):
        shape = _shape_of(spec)
        if 0 in shape:
            where = "/".join([argument, *map(str, path)])
            raise ValueError(
                f"{where}: got the shape {shape}, an array without elements, expected "
                "at least one element in each axis; correct the space or spec of the "
                "environment, or leave this part out of it with a wrapper."
            )


def _shape_of(spec: Any) -> tuple[Any, ...]:
    shape = getattr(spec, "shape", ())
    # A tf.TensorShape of unknown rank has no axes to look at.
    return () if getattr(shape, "rank", 0) is None else tuple(shape)
