"""Items on their way to a server: grouped by layout, so that each is two numbers.

Most items of a writer are alike: the same columns with the same distances between their
steps. Then only the first step and the priority differ, and a message is made of all of
them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service import signatures
from tfrl.replay_service.writing.history import TrajectoryColumn
from tfrl.specs import spec_json

_MAX_LAYOUTS = 1024

Key = tuple[Any, ...]


class Layout:
    """What items that are alike have in common.

    Attributes:
      table: To which they go.
      columns: Of each: its number in the schema, in the ranges, and whether squeezed.
      lengths: Of the ranges.
      offsets: i64[W], of the steps of all ranges from the item's first.
      lowest, highest: The least and the largest of them.
    """

    __slots__ = ("columns", "highest", "lengths", "lowest", "offsets", "table")

    def __init__(self, table: str, columns: Sequence[TrajectoryColumn]):
        """Makes it from an item's columns, none of which is empty."""
        first = columns[0]._start
        ranges: dict[Any, int] = {}
        parts = []
        self.table = table
        self.columns = []
        for column in columns:
            where = (column._start, column._extent)
            if where not in ranges:
                ranges[where] = len(ranges)
                parts.append(np.asarray(column.steps, np.int64) - first)
            index = column._column.index
            self.columns.append([index, ranges[where], column.is_squeezed])
        self.lengths = [len(part) for part in parts]
        self.offsets = np.concatenate(parts)
        self.lowest = int(self.offsets.min())
        self.highest = int(self.offsets.max())


class Group:
    """Items of one layout and episode that have not been sent.

    Attributes:
      key: Tells items that are alike.
      layout: Theirs.
      episode: In which they were made.
      starts: Of each, the first column's first step.
      priorities: Of each.
    """

    __slots__ = ("episode", "key", "layout", "lowest", "priorities", "starts")

    def __init__(self, key: Key, layout: Layout, episode: int):
        self.key = key
        self.layout = layout
        self.lowest = layout.lowest
        self.episode = episode
        self.starts: list[int] = []
        self.priorities: list[float] = []

    def split_off(self, count: int) -> Group:
        """Takes the first `count` items away, and returns them."""
        first = Group(self.key, self.layout, self.episode)
        first.starts, self.starts = self.starts[:count], self.starts[count:]
        first.priorities = self.priorities[:count]
        self.priorities = self.priorities[count:]
        return first


class SentGroup(NamedTuple):
    """Items as in a message, with the numbers by which they are confirmed."""

    layout: Layout
    episode: int
    starts: np.ndarray
    priorities: np.ndarray
    numbers: np.ndarray

    @property
    def refs(self) -> np.ndarray:
        """The steps of the items, i64[n, W]."""
        return self.starts[:, None] + self.layout.offsets

    @property
    def description(self) -> dict[str, Any]:
        """What the message says of the group."""
        layout = self.layout
        return {
            "table": layout.table,
            "n": len(self.starts),
            "columns": layout.columns,
            "lengths": layout.lengths,
            "episode": self.episode,
        }


class Batch:
    """The groups of a message, kept until the server has confirmed them.

    Attributes:
      groups: In the order in which they were made.
      last: The number of the last item.
      lowest, highest: The first and the last step that an item refers to.
    """

    __slots__ = ("groups", "highest", "last", "lowest")

    def __init__(self, groups: Sequence[Group], number: int):
        """Numbers the items of groups, from `number` on."""
        self.groups: list[SentGroup] = []
        lows, highs = [], []
        for group in groups:
            starts, layout = group.starts, group.layout
            count = len(starts)
            sent = SentGroup(
                layout,
                group.episode,
                np.array(starts, np.int64),
                np.array(group.priorities, np.float64),
                np.arange(number, number + count),
            )
            self.groups.append(sent)
            number += count
            lows.append(min(starts) + layout.lowest)
            highs.append(max(starts) + layout.highest)
        self.last = number - 1
        self.lowest = min(lows)
        self.highest = max(highs)

    def drop_confirmed(self, number: int) -> None:
        """Drops the items up to a number."""
        groups = []
        for group in self.groups:
            left = group.numbers > number
            if left.all():
                groups.append(group)
            elif left.any():
                starts, priorities, numbers = (array[left] for array in group[2:])
                groups.append(
                    SentGroup(group.layout, group.episode, starts, priorities, numbers)
                )
        self.groups = groups


def split_groups(groups: list[Group], most: int) -> Iterator[list[Group]]:
    """Yields groups of altogether at most so many items, in order, all used up."""
    part: list[Group] = []
    room = most
    for group in groups:
        while len(group.starts) > room:
            if room:
                part.append(group.split_off(room))
            yield part
            part, room = [], most
        part.append(group)
        room -= len(group.starts)
    if part:
        yield part


class Layouts:
    """The layouts of a writer's items, each checked once."""

    def __init__(self, *, validates: bool, by_steps: bool):
        """Starts without tables, see `set_tables`.

        Args:
          validates: Whether to check items against the tables' signatures.
          by_steps: Whether these are of single steps.
        """
        self._validates = validates
        self._by_steps = by_steps
        self._tables: dict[str, list[spec_json.Leaf] | None] = {}
        self._layouts: dict[Key, Layout] = {}

    def set_tables(self, tables: Mapping[str, Any]) -> None:
        """Takes the server's tables, as it tells of them in its welcome."""
        self._layouts.clear()
        self._tables = {}
        for name, table in tables.items():
            signature = table.get("signature")
            leaves = None if signature is None else spec_json.leaves(signature)
            self._tables[name] = leaves

    def get(self, key: Key, table: str, columns: Sequence[TrajectoryColumn]) -> Layout:
        """Returns the layout of an item.

        Raises:
          ValueError: If the table or its signature refuses it, or it is empty.
        """
        layout = self._layouts.get(key)
        if layout is None:
            if not all(map(len, columns)):
                raise ValueError(
                    "trajectory must not be empty. Got a column of no steps: leave it "
                    "out, or make the item when there are steps for it."
                )
            if self._validates:
                self._check(table, columns)
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = Layout(table, columns)
        return layout

    def _check(self, table: str, columns: Sequence[TrajectoryColumn]) -> None:
        if table not in self._tables:
            raise ValueError(
                f"Unable to create item in table '{table}' since the table could not "
                f"be found. The server has the tables {sorted(self._tables)}."
            )
        leaves = self._tables[table]
        if leaves is None:
            return
        problem = signatures.mismatch(
            table, leaves, [(c.dtype.name, c.shape) for c in columns]
        )
        if problem is not None and self._by_steps:
            problem = signatures.mismatch(
                table, leaves, [(c.dtype.name, tuple(c._column.shape)) for c in columns]
            )
        if problem is not None:
            raise ValueError(problem)
