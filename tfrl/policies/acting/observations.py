"""Checks raw observations, and makes batches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tree

from tfrl.specs import array_spec, bounds, matching, tensor_spec
from tfrl.typing import types


class _Leaf(NamedTuple):
    """A leaf of an observation: its path for messages, and its spec."""

    where: str
    spec: array_spec.ArraySpec
    is_floating: bool


class Observations:
    """Checks raw observations against their specs."""

    def __init__(self, observation_spec: Any) -> None:
        """Prepares the checks for a nest of specs."""
        self._spec = tensor_spec.to_array_spec(observation_spec)
        self._is_one = isinstance(self._spec, array_spec.ArraySpec)
        self._leaves = [
            _Leaf(
                matching.join("observation", *path),
                leaf,
                array_spec.is_continuous(leaf),
            )
            for path, leaf in tree.flatten_with_path(self._spec)
        ]

    def as_batch(self, observation: Any) -> tuple[types.NestedArray, bool]:
        """Returns an observation as a batch, `[B, ...]`, of the specs' dtypes.

        Args:
          observation: One observation, or a batch of them.

        Returns:
          A nest of arrays, and whether a batch was given. One observation becomes a
          batch of size 1.

        Raises:
          TypeError: A value cannot be cast to the dtype of its spec.
          ValueError: The structure, or a shape, differs from the specs, or a number is
            not finite. Environments raise this error, too, because networks make NaN
            of infinity; a bound of infinity only says that a number has no bound.
        """
        arrays: list[np.ndarray] = []
        outer: tuple[None, ...] = ()
        for leaf, value in zip(self._leaves, self._flat(observation), strict=True):
            array = _cast(_as_array(leaf.where, value), leaf.spec)
            if not arrays and array.ndim > len(leaf.spec.shape):
                outer = (None,)
            matching.check(
                leaf.where,
                array,
                leaf.spec,
                outer,
                remedy="convert it, and give a batch of all observations or of none",
                dtype_error=TypeError,
            )
            if leaf.is_floating and not bounds.is_finite_in_float32(array):
                raise ValueError(
                    f"{leaf.where}: got {bounds.describe_not_finite_in_float32(array)},"
                    " expected finite numbers, as from the environment in training; "
                    "correct what computes the observation, or clip it."
                )
            arrays.append(array)
        is_batch = bool(outer)
        if not is_batch:
            arrays = [array[np.newaxis] for array in arrays]
        return self._packed(arrays), is_batch

    def _flat(self, observation: Any) -> list[Any]:
        if self._is_one:
            return [observation]
        if isinstance(self._spec, Mapping) and isinstance(observation, Mapping):
            # As by `TFPolicy.action`, what the policy does not see is dropped.
            known = observation.keys() & self._spec.keys()
            observation = {name: observation[name] for name in known}
        try:
            return tree.flatten_up_to(self._spec, observation, check_types=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"observation: its structure differs from the spec {self._spec}: "
                f"{error}"
            ) from None

    def _packed(self, arrays: list[np.ndarray]) -> Any:
        return arrays[0] if self._is_one else tree.unflatten_as(self._spec, arrays)


def batched(nest: types.NestedArray) -> types.NestedArray:
    """Returns a batch of size 1 that holds a nest of arrays."""
    return tree.map_structure(lambda array: array[np.newaxis], nest)


def _as_array(where: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError as error:  # Lists of different lengths.
        raise ValueError(f"{where}: got no array: {error}") from None


def _cast(array: np.ndarray, spec: array_spec.ArraySpec) -> np.ndarray:
    """Casts an array to the dtype of its spec, if that keeps the kind or the values."""
    if array.dtype == spec.dtype:
        return array
    if spec.dtype.kind not in "biu" or array.dtype.kind not in "biuf":
        return matching.cast(array, spec)
    with np.errstate(invalid="ignore"):  # NaN has no integer.
        cast = array.astype(spec.dtype)
    return cast if np.array_equal(cast, array) else array
