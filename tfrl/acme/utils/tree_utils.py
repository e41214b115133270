"""Functions of nests of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree


def fast_map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Returns `tree.map_structure(func, *structure)` without its checks.

    The result has the structure of the last nest.
    """
    leaves = zip(*map(tree.flatten, structure), strict=True)
    return tree.unflatten_as(structure[-1], [func(*each) for each in leaves])


def fast_map_structure_with_path(func: Callable[..., Any], *structure: Any) -> Any:
    """Like `fast_map_structure`, for a function that takes a leaf's path first."""
    paths = [path for path, _ in tree.flatten_with_path(structure[0])]
    leaves = zip(paths, *map(tree.flatten, structure), strict=True)
    return tree.unflatten_as(structure[-1], [func(*each) for each in leaves])


def stack_sequence_fields(sequence: Sequence[Any]) -> Any:
    """Stacks the arrays of equal nests along a new first axis.

    >>> stack_sequence_fields([{"a": 1}, {"a": 2}])
    {'a': array([1, 2])}

    Args:
      sequence: Nests of one structure. Arrays of different shapes become an array of
        objects.

    Raises:
      ValueError: If the sequence is empty.
    """
    if not sequence:
        raise ValueError(
            "sequence: got an empty one, expected at least one nest; do not stack "
            "nothing."
        )
    return fast_map_structure(_stack, *sequence)


def unstack_sequence_fields(struct: Any, batch_size: int) -> list[Any]:
    """Returns the nests that `stack_sequence_fields` stacked.

    Args:
      struct: A nest of arrays `[batch_size, ...]`.
      batch_size: The length of the first axis.
    """
    take = operator.itemgetter
    return [fast_map_structure(take(i), struct) for i in range(batch_size)]


def broadcast_structures(*args: Any) -> tuple[Any, ...]:
    """Returns the arguments, all as nests of one structure.

    >>> broadcast_structures(("a", "b"), "c")
    (('a', 'b'), ('c', 'c'))

    Args:
      *args: Nests of one structure, and single values, which are repeated in it.

    Raises:
      ValueError: If nests have different structures.
      TypeError: If they have different types.
    """
    nests = [each for each in args if tree.is_nested(each)]
    for each in nests[1:]:
        tree.assert_same_structure(nests[0], each, check_types=True)
    return tuple(
        each if not nests or tree.is_nested(each) else _repeat(each, nests[0])
        for each in args
    )


def tree_map(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of nests that applies `f` to their leaves."""
    return lambda *structures: tree.map_structure(f, *structures)


def _repeat(value: Any, nest: Any) -> Any:
    return tree.map_structure(lambda _: value, nest)


def _stack(*values: Any) -> np.ndarray:
    if len({np.shape(value) for value in values}) == 1:
        return np.stack(values)
    stacked = np.empty(len(values), object)
    stacked[:] = values
    return stacked
