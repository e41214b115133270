"""Copies observations of Gymnasium's environments into arrays of their specs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.specs import array_spec


def to_spec(observation: Any, spec: Any) -> Any:
    """Copies an observation into arrays of the spec's structure and dtypes.

    A copy is necessary, because an environment may change its arrays in place, and the
    caller keeps the result.

    Args:
      observation: A nest of arrays and numbers.
      spec: The nest of `ArraySpec`s.

    Raises:
      TypeError: If an array cannot be converted, or the structures differ.
      ValueError: As TypeError.
    """
    if isinstance(spec, array_spec.ArraySpec):
        return np.array(observation, spec.dtype)
    return tree.map_structure_up_to(
        spec, lambda leaf, value: np.array(value, leaf.dtype), spec, observation
    )
