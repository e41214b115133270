"""Assigns the leaves of appended data to columns, with cached plans.

Most steps have the structure of the step before: the same keys and types of nodes. A
`ColumnPlan` flattens such data with plain Python loops. Only data of a new structure
goes through `tree`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import tree

_MISSING = object()
_MAX_PLANS = 16

Path = tuple[Any, ...]


class Structure:
    """The union of the structures of all data so far, with a history at each leaf.

    Attributes:
      history: The nest of histories; None before the first data.
      columns: The columns in the order of their creation.
    """

    def __init__(
        self, make_column: Callable[[Path], Any], make_history: Callable[[Any], Any]
    ):
        """Creates an empty structure.

        Args:
          make_column: Returns a new leaf's column, given the leaf's path.
          make_history: Returns the history of a column.
        """
        self._make_column = make_column
        self._make_history = make_history
        self._by_path: dict[Path, Any] = {}
        self._plans: list[ColumnPlan] = []
        self.history: Any = None
        self.columns: list[Any] = []

    def take_apart(self, data: Any) -> tuple[list[Any], ColumnPlan]:
        """Returns the leaves of `data`, and a plan that lists the leaves' columns.

        Raises:
          ValueError: If the structure of `data` contradicts earlier data, for
            example if a nest has become a leaf.
        """
        for plan in self._plans:
            leaves: list[Any] = []
            if plan.root is None:
                if not tree.is_nested(data):
                    leaves.append(data)
                    return leaves, plan
            elif plan.root.take(data, leaves):
                return leaves, plan
        return self.take_apart_uncached(data)

    def take_apart_uncached(self, data: Any) -> tuple[list[Any], ColumnPlan]:
        """Does the same as `take_apart`, without cached plans."""
        flat = tree.flatten_with_path(data)
        leaves = [value for _, value in flat]
        if not all(path in self._by_path for path, _ in flat):
            old = _MISSING if self.history is None else self.history
            self.history = self._merge(old, data, ())
            self._plans = []
        columns = [self._by_path[path] for path, _ in flat]
        plan = _make_plan(data, columns, len(columns) == len(self.columns))
        if plan is None:
            return leaves, ColumnPlan(None, columns, len(columns) == len(self.columns))
        self._plans = [plan, *self._plans[: _MAX_PLANS - 1]]
        if plan.root is None:
            return leaves, plan
        ordered: list[Any] = []
        plan.root.take(data, ordered)
        return ordered, plan

    def column_at(self, path: Path) -> Any:
        """Returns the column at a path, or None."""
        return self._by_path.get(tuple(path))

    def _merge(self, old: Any, data: Any, path: Path) -> Any:
        if old is _MISSING:
            return tree.map_structure_with_path(
                lambda end, _: self._add(path + end), data
            )
        if path in self._by_path or not tree.is_nested(data):
            if path in self._by_path and not tree.is_nested(data):
                return old
            raise _mismatch(path, old, data)
        if isinstance(old, Mapping) and isinstance(data, Mapping):
            merged = {
                key: self._merge(old.get(key, _MISSING), data[key], (*path, key))
                if key in data
                else old[key]
                for key in dict.fromkeys([*old, *data])
            }
            kind: Any = type(old)
            return merged if kind is dict else kind(merged)
        if type(old) is not type(data) or not isinstance(old, list | tuple):
            raise _mismatch(path, old, data)
        names = getattr(old, "_fields", range(max(len(old), len(data))))
        items = [
            before if now is _MISSING else self._merge(before, now, (*path, name))
            for name, before, now in zip(
                names,
                *zip(
                    *itertools.zip_longest(old, data, fillvalue=_MISSING), strict=True
                ),
                strict=True,
            )
        ]
        return type(old)(*items) if hasattr(old, "_fields") else type(old)(items)

    def _add(self, path: Path) -> Any:
        column = self._make_column(path)
        self._by_path[path] = column
        self.columns.append(column)
        return self._make_history(column)


class ColumnPlan:
    """Flattens data of one structure, and lists the column of each leaf.

    Attributes:
      root: The outermost node; None if the data is a single leaf.
      columns: The columns of the leaves, in the order in which the nodes yield them.
      is_whole: Whether the data has a leaf for every column.
    """

    __slots__ = ("columns", "is_whole", "root")

    def __init__(self, root: _Node | None, columns: list[Any], is_whole: bool):
        """Creates a plan.

        Args:
          root: See the attribute.
          columns: See the attribute.
          is_whole: See the attribute.
        """
        self.root = root
        self.columns = columns
        self.is_whole = is_whole


class _Node:
    """A dict, list or tuple, whose leaves are taken in the order of iteration."""

    __slots__ = ("_children", "_is_flat", "_keys", "_length", "_type")

    def __init__(self, data: Any, children: list[_Node | None]):
        self._type = type(data)
        self._keys = tuple(data) if isinstance(data, dict) else None
        self._length = len(data)
        self._children = children
        self._is_flat = not any(children)

    def take(self, data: Any, leaves: list[Any]) -> bool:
        """Appends the leaves of data to `leaves`; returns whether the node matches."""
        if type(data) is not self._type:
            return False
        values = data
        if self._keys is None:
            if len(data) != self._length:
                return False
        elif tuple(data) != self._keys:
            return False
        else:
            values = data.values()
        if self._is_flat:
            leaves.extend(values)
            return True
        for child, value in zip(self._children, values, strict=True):
            if child is None:
                leaves.append(value)
            elif not child.take(value, leaves):
                return False
        return True

    def __bool__(self) -> bool:
        return True


def _make_plan(data: Any, columns: list[Any], is_whole: bool) -> ColumnPlan | None:
    """Returns a plan, or None if the data has nodes that `_Node` does not support.

    Args:
      data: The data to flatten.
      columns: The columns of the data's leaves, in the order of `tree.flatten`.
      is_whole: Whether the data has a leaf for every column.
    """
    remaining = iter(columns)
    numbered = tree.map_structure(lambda _: next(remaining), data)
    ordered: list[Any] = []

    def plan(nest: Any, of: Any) -> _Node | None:
        if not tree.is_nested(nest):
            ordered.append(of)
            return None
        if not isinstance(nest, dict | list | tuple):
            raise TypeError
        if isinstance(nest, dict):
            children = [plan(nest[key], of[key]) for key in nest]
        else:
            children = [plan(x, y) for x, y in zip(nest, of, strict=True)]
        return _Node(nest, children)

    try:
        root = plan(data, numbered)
    except TypeError:
        return None
    return ColumnPlan(root, ordered, is_whole)


def _mismatch(path: Path, old: Any, data: Any) -> ValueError:
    before = type(old).__name__ if tree.is_nested(old) else "leaf"
    return ValueError(
        f"append: got a {type(data).__name__} at path {path}, expected a {before} as "
        "before. Keys may be added and left out from step to step, but a leaf must "
        "stay a leaf: append other data with another writer."
    )
