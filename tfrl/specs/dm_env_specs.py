"""The specs of dm_env, and their conversion to and from array specs.

`Array`, `BoundedArray` and `DiscreteArray` are dm_env's own classes, for code that was
written for dm_env or Acme. The time steps of both libraries have the same fields; only
the classes of their specs differ.

>>> from tfrl import specs
>>> specs.dm_env_specs.from_dm_env_spec(specs.DiscreteArray(3, name="action"))
BoundedArraySpec(shape=(), dtype=dtype('int32'), name='action', minimum=0, maximum=2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tree
from dm_env import specs as dm_specs

from tfrl.specs import array_spec

Array = dm_specs.Array
BoundedArray = dm_specs.BoundedArray
DiscreteArray = dm_specs.DiscreteArray


def from_dm_env_spec(spec: Any) -> Any:
    """Returns the nest of array specs for a nest of dm_env specs.

    Dtypes and names do not change. A `StringArray` becomes an `ArraySpec` of objects.
    Array specs of tfrl in the nest are not changed.

    Raises:
      ValueError: If something in the nest is not a spec.
    """

    def convert(leaf: Any) -> array_spec.ArraySpec:
        if isinstance(leaf, array_spec.ArraySpec):
            return leaf
        if isinstance(leaf, dm_specs.BoundedArray):
            return array_spec.BoundedArraySpec.from_spec(leaf)
        if isinstance(leaf, dm_specs.Array):
            return array_spec.ArraySpec.from_spec(leaf)
        raise ValueError(
            f"spec: got {leaf!r} of type {type(leaf).__name__} in the nest, expected "
            "specs of dm_env; describe an array with dm_env.specs.Array."
        )

    return tree.map_structure(convert, spec)


def to_dm_env_spec(spec: Any) -> Any:
    """Returns the nest of dm_env specs for a nest of array specs.

    A bounded integer scalar that starts at 0 becomes a `DiscreteArray`.

    Raises:
      ValueError: If something in the nest is not an array spec.
    """

    def convert(leaf: Any) -> dm_specs.Array:
        if not isinstance(leaf, array_spec.ArraySpec):
            raise ValueError(
                f"spec: got {leaf!r} of type {type(leaf).__name__} in the nest, "
                "expected ArraySpecs; convert tensor specs with "
                "tensor_spec.to_array_spec."
            )
        if not isinstance(leaf, array_spec.BoundedArraySpec):
            return dm_specs.Array(leaf.shape, leaf.dtype, leaf.name)
        if _counts_from_zero(leaf):
            return dm_specs.DiscreteArray(int(leaf.num_values), leaf.dtype, leaf.name)
        return dm_specs.BoundedArray(
            leaf.shape, leaf.dtype, leaf.minimum, leaf.maximum, leaf.name
        )

    return tree.map_structure(convert, spec)


def _counts_from_zero(spec: array_spec.BoundedArraySpec) -> bool:
    return (
        spec.shape == ()
        and array_spec.is_discrete(spec)
        and bool(spec.minimum == 0)
        # A range up to the dtype's largest value means that there is no real bound.
        and bool(spec.maximum < np.iinfo(spec.dtype).max)
    )
