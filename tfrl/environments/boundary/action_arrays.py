"""Flattens actions to arrays and checks them; in graphs, use `action_tensors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.specs import array_spec


def flatten(
    action: Any, spec: Any, outer_shape: tuple[int, ...] = ()
) -> list[np.ndarray]:
    """Returns the arrays of `action` in the order and with the dtypes of its specs.

    Args:
      action: A nest like `spec`.
      spec: A nest of `ArraySpec`s.
      outer_shape: The dimensions in front of the specs' shapes, such as `(B,)`.

    Raises:
      ValueError: If the structure or a shape differs.
      TypeError: If a dtype is of another kind, such as floats for integers.
    """
    if isinstance(spec, array_spec.ArraySpec):
        return [_as_array("action", action, spec, outer_shape)]
    return [
        _as_array("/".join(("action", *map(str, path))), leaf, leaf_spec, outer_shape)
        for (path, leaf_spec), leaf in zip(
            tree.flatten_with_path(spec), leaves(action, spec), strict=True
        )
    ]


def leaves(action: Any, spec: Any) -> list[Any]:
    """Returns the flat list of the values in `action`, one for each leaf of `spec`.

    Args:
      action: A nest like `spec`.
      spec: A nest of array or tensor specs.

    Raises:
      ValueError: If the structure differs.
    """
    try:
        return tree.flatten_up_to(spec, action)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"action: got {action!r}, expected the structure of the action spec {spec} "
            f"({error}); pack the actions like the spec."
        ) from None


def can_cast(dtype: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether actions of `dtype` may be cast to `to`; integers of any size may."""
    if dtype.kind in "iu" and to.kind in "iu":
        return True
    return np.can_cast(dtype, to, "same_kind")


def _as_array(
    where: str, value: Any, spec: array_spec.ArraySpec, outer_shape: tuple[int, ...]
) -> np.ndarray:
    array = np.asarray(value)
    expected = outer_shape + spec.shape
    if array.shape != expected:
        raise ValueError(
            f"{where}: got shape {array.shape}, expected {expected}; take actions that "
            f"follow {spec}{', with the batch in front' if outer_shape else ''}."
        )
    if array.dtype == spec.dtype:
        return array
    if not can_cast(array.dtype, spec.dtype):
        raise TypeError(
            f"{where}: got dtype {array.dtype}, expected {spec.dtype}; cast the action."
        )
    return array.astype(spec.dtype)
