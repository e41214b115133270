"""Splits nests of specs into levels, and joins them again.

The file format (`spec_proto`) and the messages of the replay service (`spec_json`) both
represent a nest by its levels.
"""

from __future__ import annotations

import collections
import functools
import keyword
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Level(NamedTuple):
    """One node of a nest, without the items below it.

    Attributes:
      kind: "dict", "ordered_dict", "list", "tuple" or "namedtuple".
      keys: The keys of a mapping, or the fields of a named tuple; else empty.
      name: The qualified name of a named tuple's class.
      module: The module of a named tuple's class, if it is known.
    """

    kind: str
    keys: tuple[Any, ...] = ()
    name: str = ""
    module: str | None = None

    def path_of(self, index: int) -> Any:
        """Returns the path of the item at `index`: a key, a field or the index."""
        return self.keys[index] if self.keys else index


def split(nest: Any) -> tuple[Level, list[Any]] | None:
    """Returns the outermost level of a nest and its items; None for a leaf."""
    if isinstance(nest, Mapping):
        kind = "ordered_dict" if isinstance(nest, collections.OrderedDict) else "dict"
        return Level(kind, tuple(nest)), list(nest.values())
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        made = type(nest)
        fields = tuple(nest._fields)
        return Level("namedtuple", fields, made.__qualname__, made.__module__), list(
            nest
        )
    if isinstance(nest, list):
        return Level("list"), nest
    if isinstance(nest, tuple):
        return Level("tuple"), list(nest)
    return None


def join(level: Level, items: Sequence[Any]) -> Any:
    """Returns the nest with this outermost level and these items.

    A named tuple has its own class if this process has imported it already, else a new
    class of the same name and fields. Nothing is imported, because the level may come
    from an untrusted message.

    Args:
      level: The level.
      items: One item per key of the level, or any number for a list or tuple.
    """
    if level.kind == "list":
        return list(items)
    if level.kind == "tuple":
        return tuple(items)
    if level.kind == "namedtuple":
        return _class_of(level)(*items)
    pairs = zip(level.keys, items, strict=True)
    return dict(pairs) if level.kind == "dict" else collections.OrderedDict(pairs)


def is_field(name: Any) -> bool:
    """Returns whether a named tuple can have a field of this name."""
    return _is_name(name) and not name.startswith("_")


def _class_of(level: Level) -> Any:
    found: Any = None if level.module is None else sys.modules.get(level.module)
    for part in level.name.split("."):
        found = getattr(found, part, None)
    if (
        isinstance(found, type)
        and issubclass(found, tuple)
        and getattr(found, "_fields", None) == level.keys
    ):
        return found
    name = level.name.rpartition(".")[2]
    return _new_class(name if _is_name(name) else "Nest", level.keys)


@functools.lru_cache(maxsize=256)
def _new_class(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
