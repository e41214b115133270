"""The base class of the suites, and functions that compare values with specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import tree

from tfrl.specs import array_spec, matching


class Conformance:
    """Base class of the suites; every method whose name begins with `test_` is a check.

    pytest collects a subclass whose name begins with `Test`; for unittest, inherit
    `unittest.TestCase` as well. `run_all` runs the checks without either.
    """

    @classmethod
    def checks(cls) -> list[str]:
        """Returns the names of the checks, in the order in which they are written."""
        names = [
            name for base in reversed(cls.__mro__) for name in vars(base) if _is(name)
        ]
        return list(dict.fromkeys(names))

    def run_all(self) -> None:
        """Runs every check.

        Raises:
          AssertionError: At the first check that fails.
        """
        for name in self.checks():
            getattr(self, name)()


def _is(name: str) -> bool:
    return name.startswith("test_")


def fail(where: str, got: str, expected: str, remedy: str) -> NoReturn:
    """Raises the AssertionError of a check.

    Args:
      where: The name of the value that is wrong.
      got: The value, or a description of it.
      expected: The expected value, or a description of it.
      remedy: The remedy.

    Raises:
      AssertionError: Always.
    """
    raise AssertionError(f"{where}: got {got}, expected {expected}; {remedy}.")


def check_structure(value: Any, spec: Any, where: str, remedy: str) -> None:
    """Raises an AssertionError unless `value` has the structure of `spec`."""
    try:
        tree.assert_same_structure(value, spec, check_types=False)
    except (TypeError, ValueError):
        fail(where, _structure(value), f"the structure {_structure(spec)}", remedy)


def check_like_spec(
    value: Any,
    spec: Any,
    outer_shape: Sequence[int],
    where: str,
    remedy: str,
    bounds: bool = True,
) -> None:
    """Raises an AssertionError unless a nest follows its specs.

    Args:
      value: A nest of arrays or eager tensors, each `[*outer_shape, *spec.shape]`.
      spec: A nest of array or tensor specs.
      outer_shape: The dimensions in front of the specs' own.
      where: The name of the nest, for the message.
      remedy: The remedy, for the message.
      bounds: Whether the bounds of bounded specs are checked as well.

    Raises:
      AssertionError: If a structure, dtype, shape or value is wrong. The message names
        the leaf.
    """
    check_structure(value, spec, where, remedy)
    paths = tree.flatten_with_path(spec)
    for (path, leaf_spec), leaf in zip(paths, tree.flatten(value), strict=True):
        place, array = matching.join(where, *path), np.asarray(leaf)
        try:
            matching.check(place, array, leaf_spec, outer_shape, remedy=remedy)
            if bounds and hasattr(leaf_spec, "minimum"):
                matching.check_bounds(place, array, leaf_spec, remedy=remedy)
        except ValueError as error:
            raise AssertionError(str(error)) from None


def check_same(one: Any, other: Any, where: str, expected: str, remedy: str) -> None:
    """Raises an AssertionError unless two nests of arrays are equal, bit for bit."""
    for (path, a), b in zip(
        tree.flatten_with_path(one), tree.flatten(other), strict=True
    ):
        first, second = np.asarray(a), np.asarray(b)
        if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
            name = "/".join((where, *map(str, path)))
            fail(name, f"{_short(second)}", f"{_short(first)}, {expected}", remedy)


def same(one: Any, other: Any) -> bool:
    """Whether two nests of arrays of one structure are equal."""
    return all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(tree.flatten(one), tree.flatten(other), strict=True)
    )


def copy_nest(nest: Any) -> Any:
    """Returns a nest of new arrays with the values of `nest`."""
    return tree.map_structure(np.array, nest)


def corners(spec: Any, outer_shape: Sequence[int]) -> list[Any]:
    """Returns two nests: the lowest and the highest values of specs, `[*outer, ...]`.

    Returns an empty list if a spec has no bounds. A bound at the limit of a floating
    dtype counts as no bound.
    """
    leaves = tree.flatten(spec)
    if not all(isinstance(leaf, array_spec.BoundedArraySpec) for leaf in leaves):
        return []
    if any(
        leaf.dtype.kind == "f"
        and np.any(np.abs([leaf.minimum, leaf.maximum]) >= np.finfo(leaf.dtype).max)
        for leaf in leaves
    ):
        return []

    def full(leaf: Any, bound: str) -> np.ndarray:
        value = np.broadcast_to(getattr(leaf, bound), (*outer_shape, *leaf.shape))
        return np.array(value, leaf.dtype)

    return [
        tree.map_structure(lambda leaf, bound=bound: full(leaf, bound), spec)
        for bound in ("minimum", "maximum")
    ]


def _structure(nest: Any) -> str:
    return str(tree.map_structure(lambda _: ".", nest))


def _short(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)
