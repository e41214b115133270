"""Stores the items of a table in arrays, one array per property.

Each item occupies a row. Its key holds the number of its insert (modulo 2**32) in the
upper half and its row in the lower half, so no dictionary is needed to find it. The
upper eight bits of the row are zero in tables of less than 2**24 rows, where clients of
several servers put the number of the server: see `tfrl.distribute.shards.shard`.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Mapping

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib

NO_KEY = np.uint64(2**64 - 1)  # The key of a row without an item.
NAMES = ("keys", "priorities", "times_sampled", "payloads", "episodes", "stamps")

_ONE = np.int32(1)  # np.add.at is five times slower with a Python int.
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)
_FIRST_CAPACITY = 256
_MOST_GROWTH = 1 << 16  # Rows.
_MOST_RESERVED = 1 << 24  # Rows.
_EPISODE_PARTS = 64  # Dictionaries of counts.


class Columns:
    """The items of a table, by row.

    Attributes:
      cut: The unfinished copy of the columns, or None.
      reserved: The number of rows for which addresses are reserved.
      size: The number of items.
      capacity: The number of rows.
      used: Rows from this number on have never held an item. Their contents are
        undefined.
      keys: `[capacity]` uint64, `NO_KEY` in rows without an item.
      priorities: `[capacity]` float64.
      times_sampled: `[capacity]` int32.
      payloads: `[capacity]` int64, each of which holds two int32.
      episodes: `[capacity]` int64, the number of the item's episode.
      stamps: `[capacity]` int64, the number of the item's last insert or update,
        counted over all items; -1 in rows without an item.
    """

    def __init__(self, max_size: int) -> None:
        """Creates columns for a table of at most `max_size` items."""
        self._max_size = max_size
        self.reserved = min(max_size + 1024, _MOST_RESERVED)
        self.cut: Cut | None = None
        self._on_grow: list[Callable[[int], None]] = []
        self.capacity = 0
        self.insert_number = 0
        self.stamp = 0
        self._set_empty()

    def _set_empty(self) -> None:
        """Sets new arrays, without rows."""
        self.size = 0
        self.used = 0
        self._num_free = 0
        self.keys = np.zeros(0, np.uint64)
        self.priorities = np.zeros(0)
        self.times_sampled = np.zeros(0, np.int32)
        self.payloads = np.zeros(0, np.int64)
        self.episodes = np.zeros(0, np.int64)
        self.stamps = np.zeros(0, np.int64)
        self._free = np.zeros(0, np.int32)

    def clear(self) -> list[np.ndarray]:
        """Removes all items. Their keys are not used again.

        This makes new arrays, so it is fast.

        Returns:
          The former arrays of the rows in use: the keys, the payloads, and others.
        """
        former: list[np.ndarray]
        former = [self.keys[: self.used], self.payloads[: self.used]]
        former += [self.priorities, self.times_sampled, self.episodes, self.stamps]
        self._set_empty()
        self._set_capacity(self.capacity)
        return former

    def when_grown(self, grow: Callable[[int], None]) -> None:
        """Calls `grow` with the capacity, now and whenever the capacity changes."""
        self._on_grow.append(grow)
        grow(self.capacity)

    def reserve(self, capacity: int) -> None:
        """Grows the columns to at least `capacity` rows."""
        if capacity <= self.capacity:
            return
        # The capacity at most doubles, and does not far exceed the needs of a full
        # table.
        further = max(2 * self.capacity, _FIRST_CAPACITY)
        if further > _MOST_GROWTH:
            further = (self.capacity // _MOST_GROWTH + 1) * _MOST_GROWTH
        self._set_capacity(max(capacity, min(further, self._max_size + 1024)))
        for grow in self._on_grow:
            grow(self.capacity)

    def _set_capacity(self, capacity: int) -> None:
        """Adds rows without items."""
        longer = functools.partial(
            arrays_lib.grown, size=capacity, reserved=self.reserved
        )
        self.keys = longer(self.keys)
        self.priorities = longer(self.priorities)
        self.times_sampled = longer(self.times_sampled)
        self.payloads = longer(self.payloads)
        self.episodes = longer(self.episodes)
        self.stamps = longer(self.stamps)
        self._free = longer(self._free)
        self.capacity = capacity

    def take_rows(self, n: int) -> np.ndarray:
        """Returns `[n]` rows without items, most recently freed rows first."""
        again = min(n, self._num_free)
        fresh = n - again
        self.reserve(self.used + fresh)
        self._num_free -= again
        rows = np.empty(n, np.int64)
        rows[:again] = self._free[self._num_free : self._num_free + again][::-1]
        rows[again:] = np.arange(self.used, self.used + fresh)
        self.used += fresh
        self.size += n
        return rows

    def write(
        self,
        rows: np.ndarray,
        priorities: np.ndarray,
        payloads: np.ndarray,
        episodes: np.ndarray,
    ) -> None:
        """Writes new items with new keys into rows; all arrays are `[N]`."""
        numbers = np.arange(
            self.insert_number, self.insert_number + rows.size, dtype=np.uint64
        )
        self.insert_number += rows.size
        self._record(rows, "keys", "times_sampled", "payloads", "episodes")
        # The shift drops the bits beyond 2**32.
        self.keys[rows] = (numbers << _ROW_BITS) | rows.astype(np.uint64)
        self.times_sampled[rows] = 0
        self.payloads[rows] = payloads
        self.episodes[rows] = episodes
        self.set_priorities(rows, priorities)

    def set_priorities(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Sets priorities. If a row occurs twice, its last priority is used."""
        self._record(rows, "priorities", "stamps")
        self.priorities[rows] = priorities
        self.stamps[rows] = np.arange(self.stamp, self.stamp + rows.size)
        self.stamp += rows.size

    def free(self, rows: np.ndarray) -> None:
        """Removes the items in `rows`, which must be distinct."""
        end = self._num_free + rows.size
        self._record(rows, "keys", "stamps")
        self._record(np.arange(self._num_free, end), "free_rows")
        self.keys[rows] = NO_KEY
        self.stamps[rows] = -1
        self._free[self._num_free : end] = rows
        self._num_free = end
        self.size -= rows.size

    def count_samples(self, rows: np.ndarray) -> None:
        """Counts a sample of each of the rows, which may repeat."""
        self._record(rows, "times_sampled")
        np.add.at(self.times_sampled, rows, _ONE)

    def begin_cut(self, more: Mapping[str, np.ndarray]) -> Cut:
        """Returns a new cut of the columns.

        The cut holds the used part of each column, `free_rows`, and `more`.

        Args:
          more: Further arrays of the cut, by name. The owner of these arrays records
            its changes.
        """
        arrays = {name: getattr(self, name)[: self.used] for name in NAMES}
        assert self.cut is None, "There is another cut."
        self.cut = Cut({**arrays, "free_rows": self.free_rows, **more})
        return self.cut

    def _record(self, rows: np.ndarray, *names: str) -> None:
        """Records the elements that will change in the cut."""
        if self.cut is not None:
            for name in names:
                self.cut.record(name, rows)

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows `[M]` of existing keys, and a mask `[N]` of these keys."""
        rows = (keys & _ROW_MASK).astype(np.int64)
        if self.capacity == 0:
            return rows[:0], np.zeros(rows.shape, bool)
        # With "clip", a row beyond the columns is not found because the keys differ.
        found = self.keys.take(rows, mode="clip") == keys
        found &= (keys != NO_KEY) & (rows < self.used)
        return (rows if found.all() else rows[found]), found

    def holds(self, keys: np.ndarray) -> np.ndarray:
        """Returns a mask `[N]` of the keys whose items still exist.

        Args:
          keys: `[N]` uint64, keys of items that this object holds or has held.
        """
        return self.keys.take(row_of(keys)) == keys

    def living(self) -> np.ndarray:
        """Returns the rows of all items, in ascending order."""
        return np.flatnonzero(self.keys[: self.used] != NO_KEY)

    @property
    def free_rows(self) -> np.ndarray:
        """The rows that have been freed, in the order in which they were freed."""
        return self._free[: self._num_free]

    @free_rows.setter
    def free_rows(self, rows: np.ndarray) -> None:
        self._free[: rows.size] = rows
        self._num_free = rows.size


def row_of(keys: np.ndarray) -> np.ndarray:
    """Returns the row of each key."""
    return (keys & _ROW_MASK).astype(np.int64)


def by_age(keys: np.ndarray, insert_number: int) -> np.ndarray:
    """Returns the rows of all items in the order of their inserts.

    The order comes from the keys, so it is correct unless the oldest item is 2**32
    inserts old.

    Args:
      keys: `[used]` uint64, the keys of all rows.
      insert_number: The number of the next insert.
    """
    rows = np.flatnonzero(keys != NO_KEY)
    numbers = (keys[rows] >> _ROW_BITS).astype(np.int64)
    return rows[np.argsort((numbers - insert_number) % 2**32)]


class Cut:
    """Copies of arrays, with the values that they had when the cut was made.

    Copying the arrays of a large table would keep a server's clients waiting too long.
    So another thread copies the arrays, and the owner records the old values of all
    elements that it changes meanwhile. With these, the copies are corrected afterwards.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Starts the copies. The owner must call `record` before each later change.

        Args:
          arrays: Arrays of one dimension by name. The owner may replace them by longer
            ones or by new ones.
        """
        self._arrays = dict(arrays)
        self._recorded: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._is_open = True

    def record(self, name: str, index: np.ndarray) -> None:
        """Records the values of an array's elements before they change.

        Args:
          name: The name of the array.
          index: `[N]` integers. Elements that did not exist when the cut was made are
            ignored.
        """
        if not self._is_open:
            return
        array = self._arrays[name]
        index = index[index < array.size]
        if index.size:
            self._recorded.append((name, index, array[index]))

    def copy(self) -> dict[str, np.ndarray]:
        """Returns copies, which `correct` then corrects. Any thread may call this."""
        return {name: array.copy() for name, array in self._arrays.items()}

    def close(self) -> None:
        """Stops recording, when `copy` has returned."""
        self._is_open = False

    def correct(self, copies: Mapping[str, np.ndarray]) -> None:
        """Corrects the result of `copy` after `close`. Any thread may call this."""
        # The first recorded value of an element is the one to keep.
        for name, index, values in reversed(self._recorded):
            copies[name][index] = values


class EpisodeCounts:
    """The number of items of each episode.

    Attributes:
      deleted: The number of times that the last item of an episode has been deleted.
    """

    def __init__(self) -> None:
        """Creates counts for an empty table."""
        self._parts: list[dict[int, int]] = []
        self.clear()

    def __len__(self) -> int:
        """Returns the number of episodes that have items."""
        return sum(map(len, self._parts))

    def clear(self) -> list[dict[int, int]]:
        """Resets all counts; returns the former counts, which are slow to delete."""
        former = self._parts
        # Growing one dictionary of all episodes would take long. So each of these
        # dictionaries holds a part of the episodes.
        self._parts = [{} for _ in range(_EPISODE_PARTS)]
        self.deleted = 0
        return former

    def add(self, episodes: np.ndarray) -> None:
        """Adds one item to each of the episodes `[N]`, which may repeat."""
        parts = self._parts
        for episode in episodes.tolist():
            part = parts[episode % _EPISODE_PARTS]
            part[episode] = part.get(episode, 0) + 1

    def remove(self, episodes: np.ndarray) -> None:
        """Removes one item from each of the episodes `[N]`, which may repeat."""
        for episode in episodes.tolist():
            self._remove(episode)

    def exchange(self, added: np.ndarray, removed: np.ndarray) -> None:
        """Adds and removes items of the episodes `[N]` in turn."""
        parts = self._parts
        for new, old in zip(added.tolist(), removed.tolist(), strict=True):
            part = parts[new % _EPISODE_PARTS]
            part[new] = part.get(new, 0) + 1
            self._remove(old)

    def _remove(self, episode: int) -> None:
        """Removes one item from an episode."""
        part = self._parts[episode % _EPISODE_PARTS]
        left = part[episode] - 1
        if left:
            part[episode] = left
        else:
            del part[episode]
            self.deleted += 1


def order_of_removal(first: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns the rows that a batch of inserts evicts, in the order of eviction.

    Args:
      first: `[N]` rows to evict, in the remover's order.
      new: `[N]` rows of the new items in the order of their inserts. Each insert evicts
        one item, which cannot be a new item that is inserted later.
    """
    places = {row: place for place, row in enumerate(first.tolist())}
    arrivals = new.tolist()
    coming = set(arrivals)
    waiting = [place for row, place in places.items() if row not in coming]
    order = []
    for row in arrivals:
        if row in places:
            heapq.heappush(waiting, places[row])
        order.append(heapq.heappop(waiting))
    return first[order]
