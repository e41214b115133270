"""Items on their way to a server, grouped by layout.

Most items of a writer have the same layout: the same columns with the same distances
between their steps. Only their first step and their priority differ, so a group of them
becomes one message without work per item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service import signatures
from tfrl.replay_service.transport import wire
from tfrl.replay_service.writing.history import TrajectoryColumn
from tfrl.specs import spec_json

_MAX_LAYOUTS = 1024
_MOST_REFS = 1 << 20  # References to steps in one message, unless an item has more.
_MOST_VALUES = wire.MAX_JSON_VALUES // 2  # Values in the JSON of a message's groups.

Key = tuple[Any, ...]


class GroupLayout:
    """The table and the columns that the items of a group have in common.

    Attributes:
      table: The name of the table.
      columns: For each column, its index in the schema, the index of its range of
        steps, and whether it is squeezed.
      lengths: The number of steps in each range.
      offsets: int64 `[W]`, the steps of all ranges, relative to the first step of the
        item's first column.
      lowest: The smallest offset.
      highest: The largest offset.
      num_values: The approximate number of values in the JSON that describes a group.
    """

    __slots__ = (
        "columns",
        "highest",
        "lengths",
        "lowest",
        "num_values",
        "offsets",
        "table",
    )

    def __init__(self, table: str, columns: Sequence[TrajectoryColumn]):
        """Creates the layout of an item.

        Args:
          table: The name of the table.
          columns: The columns of the item, none of which is empty.
        """
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
        self.num_values = 4 * len(self.columns) + len(self.lengths) + 8


class Group:
    """Items of one layout and episode that have not been sent.

    Attributes:
      key: The key of the layout.
      layout: The layout of the items.
      episode: The episode in which the items were created.
      starts: For each item, the first step of its first column.
      priorities: The priority of each item.
    """

    __slots__ = ("episode", "key", "layout", "lowest", "priorities", "starts")

    def __init__(self, key: Key, layout: GroupLayout, episode: int):
        """Creates a group without items.

        Args:
          key: See the attribute.
          layout: See the attribute.
          episode: See the attribute.
        """
        self.key = key
        self.layout = layout
        self.lowest = layout.lowest
        self.episode = episode
        self.starts: list[int] = []
        self.priorities: list[float] = []

    def split_off(self, count: int) -> Group:
        """Removes the first `count` items and returns them as a new group."""
        first = Group(self.key, self.layout, self.episode)
        first.starts, self.starts = self.starts[:count], self.starts[count:]
        first.priorities = self.priorities[:count]
        self.priorities = self.priorities[count:]
        return first


class SentGroup(NamedTuple):
    """A group of items in a message, with the numbers that the server confirms."""

    layout: GroupLayout
    episode: int
    starts: np.ndarray
    priorities: np.ndarray
    numbers: np.ndarray

    @property
    def refs(self) -> np.ndarray:
        """The steps of the items, int64 `[n, W]`."""
        return self.starts[:, None] + self.layout.offsets

    @property
    def description(self) -> dict[str, Any]:
        """The JSON object that describes the group in the message."""
        layout = self.layout
        return {
            "table": layout.table,
            "n": len(self.starts),
            "columns": layout.columns,
            "lengths": layout.lengths,
            "episode": self.episode,
        }


class MessageGroups:
    """The groups of a message, kept until the server has confirmed them.

    Attributes:
      groups: The groups in the order of their creation.
      last: The number of the last item.
      left: The number of items that are not confirmed.
      lowest: The first step that an item refers to.
      highest: The last step that an item refers to.
    """

    __slots__ = ("groups", "highest", "last", "left", "lowest")

    def __init__(self, groups: Sequence[Group], number: int):
        """Creates a batch.

        Args:
          groups: The groups, whose items are numbered consecutively.
          number: The number of the first item.
        """
        self.groups: list[SentGroup] = []
        first = number
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
        self.left = number - first
        self.lowest = min(lows)
        self.highest = max(highs)

    def confirm(self, number: int) -> int:
        """Confirms items up to `number`; returns how many are newly confirmed."""
        before = self.left
        self.left = min(before, max(self.last - number, 0))
        return before - self.left

    def drop_confirmed(self, number: int) -> None:
        """Drops the items whose numbers are at most `number`."""
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


def split_groups(
    groups: list[Group], most: int, num_columns: int
) -> Iterator[list[Group]]:
    """Yields lists of groups that fit into one message each, in order.

    Args:
      groups: The groups, which lose the items that are split off.
      most: The maximum number of items per list.
      num_columns: The number of columns of the steps, which share the message.
    """
    most_groups = max(1, (wire.MAX_ARRAYS - 1 - num_columns) // 3)
    part: list[Group] = []
    room, refs, values = most, _MOST_REFS, _MOST_VALUES
    for group in groups:
        layout = group.layout
        width = len(layout.offsets)
        while True:
            fitting = min(room, refs // width)
            if part and (
                fitting < 1 or values < layout.num_values or len(part) >= most_groups
            ):
                yield part
                part, room, refs, values = [], most, _MOST_REFS, _MOST_VALUES
                continue
            fitting = max(fitting, 1)
            if len(group.starts) <= fitting:
                break
            part.append(group.split_off(fitting))
            room, refs = 0, 0
        part.append(group)
        room -= len(group.starts)
        refs -= len(group.starts) * width
        values -= layout.num_values
    if part:
        yield part


class GroupLayouts:
    """Checks and caches the layouts of a writer's items."""

    def __init__(self, *, validates: bool, by_steps: bool):
        """Creates a collection without layouts or tables; see `set_tables`.

        Args:
          validates: Whether to check items against the tables' signatures.
          by_steps: Whether a signature may describe single steps instead of items.
        """
        self._validates = validates
        self._by_steps = by_steps
        self._tables: dict[str, list[spec_json.Leaf] | None] = {}
        self._layouts: dict[Key, GroupLayout] = {}

    def set_tables(self, tables: Mapping[str, Any]) -> None:
        """Sets the tables, from the server's answer to the greeting."""
        self._layouts.clear()
        self._tables = {}
        for name, table in tables.items():
            signature = table.get("signature")
            leaves = None if signature is None else spec_json.leaves(signature)
            self._tables[name] = leaves

    def get(
        self, key: Key, table: str, columns: Sequence[TrajectoryColumn]
    ) -> GroupLayout:
        """Returns the layout of an item.

        Raises:
          ValueError: If there is no such table, its signature does not match, or a
            column is empty.
        """
        layout = self._layouts.get(key)
        if layout is None:
            if not all(map(len, columns)):
                raise ValueError(
                    "trajectory must not be empty. Got a column without steps: leave "
                    "it out, or create the item when there are steps for it."
                )
            if len(columns) > wire.MAX_COLUMNS:
                raise ValueError(
                    f"trajectory: got {len(columns)} columns, expected at most "
                    f"{wire.MAX_COLUMNS}. Stack leaves into fewer, larger arrays."
                )
            if self._validates:
                self._check(table, columns)
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = GroupLayout(table, columns)
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
