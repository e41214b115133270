"""A table of items with its rate limiter, its selectors and its counts.

All operations take batches. The resulting state of the table and the returned values
are the same as for single operations, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import heap_order, insertion_order, snapshot
from tfrl.replay_service.engine.tables import samples as samples_lib
from tfrl.replay_service.engine.tables import selectors as selectors_lib


class EngineTable:
    """A table that a server holds."""

    def __init__(self, options: Mapping[str, Any], seed: int | None = None) -> None:
        """Creates an empty table.

        Args:
          options: A dictionary with `name`, `max_size`, `max_times_sampled` (below 1
            for no limit), the `to_config()` of `sampler`, `remover` and
            `rate_limiter`, and `signature`, which is only repeated by `info`.
          seed: The seed of random selectors; None for a random seed.

        Raises:
          ValueError: If a selector or the rate limiter is invalid, or the rate limiter
            would block the table forever.
        """
        self.options = dict(options)
        self.name = str(options["name"])
        self._max_size = int(options["max_size"])
        self._max_times_sampled = int(options.get("max_times_sampled", 0))
        self._limiter = rate_limiters.from_config(options["rate_limiter"])
        rate_limiters.check_satisfiable(
            self._limiter, self._max_size, self._max_times_sampled
        )
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._columns = columns_lib.Columns(self._max_size)
        self._sampler = make_selector(options["sampler"], self._columns)
        self._remover = self._sampler
        if options["remover"] != options["sampler"]:
            self._remover = make_selector(options["remover"], self._columns)
        self._selectors: list[selectors_lib.Selector] = list(
            dict.fromkeys([self._sampler, self._remover])
        )
        for role, selector in zip(
            ("sampler", "remover"), self._selectors, strict=False
        ):
            selector.role = role
        self._episodes = columns_lib.EpisodeCounts()
        self._counts = rate_limiters.Counts()
        self._num_unique_samples = 0

    def __len__(self) -> int:
        """Returns the number of items."""
        return self._columns.size

    def insertable(self, n: int) -> int:
        """Returns the number of the next `n` inserts that the limiter allows now."""
        return rate_limiters.num_inserts(self._limiter, self._counts, n)

    def sampleable(self, n: int) -> int:
        """Returns the number of the next `n` samples that the limiter allows now.

        `sample` may return fewer samples, because samples can delete items until too
        few items are left.
        """
        return rate_limiters.num_samples(self._limiter, self._counts, n)

    def insert(
        self, priorities: np.ndarray, payloads: np.ndarray, episodes: np.ndarray
    ) -> np.ndarray:
        """Inserts items, and removes items if the table is full.

        Each item is inserted before the remover chooses an item, so the remover may
        choose the new item itself.

        Args:
          priorities: `[N]` float64, where `N` is at most `insertable(N)`.
          payloads: `[N, 2]` int32, returned with samples and on removal.
          episodes: `[N]` int64, the episode of each item.

        Returns:
          `[K, 2]` int32, the payloads of the items that were removed.

        Raises:
          ValueError: If a priority is negative, not finite or too large for a selector.
            Nothing is inserted then.
        """
        priorities = selectors_lib.checked(priorities, self._selectors)
        flat = np.ascontiguousarray(payloads, np.int32).view(np.int64).reshape(-1)
        episodes = np.asarray(episodes, np.int64)
        removed = []
        start = 0
        while start < priorities.size:
            stop = start + self._stride(priorities.size - start)
            batch = priorities[start:stop], flat[start:stop], episodes[start:stop]
            if self._columns.size < self._max_size:
                self._insert_new(*batch)
            elif isinstance(self._remover, insertion_order.OldestFirst):
                removed.append(self._insert_over(self._remover, *batch))
            else:
                removed.append(self._insert_and_evict(*batch))
            start = stop
        return samples_lib.pairs(np.concatenate([samples_lib.NO_PAYLOADS, *removed]))

    def sample(self, n: int) -> samples_lib.Samples:
        """Samples up to `n` items, as many as the limiter allows now.

        An item that reaches the maximum number of samples is deleted immediately.
        """
        n = self.sampleable(n)
        if n == 0:
            return samples_lib.NOTHING
        if self._max_times_sampled > 0:
            return self._sample_limited(n)
        if isinstance(self._sampler, selectors_lib.OrderedSelector):
            rows = self._sampler.first(1).repeat(n)
            probabilities = np.ones(n)
        else:
            rows = self._sampler.draw(n, self._random)
            masses, total = self._sampler.masses(rows)
            probabilities = masses / total
        sizes = np.full(n, self._columns.size)
        return self._samples(rows, probabilities, sizes)

    def mutate(
        self, keys: np.ndarray, priorities: np.ndarray, delete_keys: np.ndarray
    ) -> np.ndarray:
        """Deletes items, then updates priorities of other items. Ignores unknown keys.

        Args:
          keys: `[N]` uint64. If a key occurs twice, its last priority is used.
          priorities: `[N]` float64, the new priority of each key.
          delete_keys: `[M]` uint64, the keys of the items to delete.

        Returns:
          `[K, 2]` int32, the payloads of the items that were deleted.

        Raises:
          ValueError: If a priority is negative or not finite, or `keys` and
            `priorities` differ in length. Nothing is changed then.
        """
        keys = np.asarray(keys, np.uint64)
        priorities = selectors_lib.checked(priorities, self._selectors)
        if keys.shape != priorities.shape:
            raise ValueError(
                f"priorities: got {priorities.size} priorities for {keys.size} keys, "
                "expected as many; pass one priority per key."
            )
        removed = samples_lib.NO_PAYLOADS
        if len(delete_keys):
            rows, _ = self._columns.find(np.asarray(delete_keys, np.uint64))
            removed = self._forget(arrays_lib.distinct(rows))
        rows, found = self._columns.find(keys)
        if rows.size:
            if rows.size < keys.size:
                priorities = priorities[found]
            self._columns.set_priorities(rows, priorities)
            for selector in self._selectors:
                selector.update(rows)
        return samples_lib.pairs(removed)

    def check(self, priorities: np.ndarray) -> None:
        """Checks priorities `[N]`, as `insert` and `mutate` do.

        Raises:
          ValueError: If a priority is negative, not finite or too large for a selector.
        """
        selectors_lib.checked(priorities, self._selectors)

    def reset(self) -> Iterator[np.ndarray]:
        """Removes all items and resets all counts.

        Returns:
          An iterator over the payloads of the items that were removed, `[K, 2]` int32
          each. It also frees the table's memory, in slices, so use it up.
        """
        former = self._columns.clear()
        for selector in self._selectors:
            selector.clear()
        counts = self._episodes.clear()
        self._counts = rate_limiters.Counts()
        self._num_unique_samples = 0
        return _former_payloads(former, counts)

    def info(self) -> dict[str, Any]:
        """Returns the fields of a Reverb `TableInfo` as a JSON object."""
        sampler, remover = (
            item_selectors.from_config(self.options[role]).options()
            for role in ("sampler", "remover")
        )
        return {
            "name": self.name,
            "sampler_options": sampler,
            "remover_options": remover,
            "max_size": self._max_size,
            "max_times_sampled": self._max_times_sampled,
            "rate_limiter_info": {
                **self._limiter.to_config(),
                "insert_stats": {"completed": self._counts.inserts},
                "sample_stats": {"completed": self._counts.samples},
            },
            "signature": self.options.get("signature"),
            "num_deleted_items": self._counts.deletes,
            "current_size": self._columns.size,
            "num_episodes": len(self._episodes),
            "num_deleted_episodes": self._episodes.deleted,
            "num_unique_samples": self._num_unique_samples,
            "total_weight": self._sampler.total_weight(),
        }

    def waiting_to_insert(self) -> str:
        """Returns a sentence with the reason why an insert has to wait."""
        return rate_limiters.why_inserts_wait(self.name, self._limiter, self._counts)

    def waiting_to_sample(self) -> str:
        """Returns a sentence with the reason why a sample has to wait."""
        return rate_limiters.why_samples_wait(self.name, self._limiter, self._counts)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Returns the table's state for `restore`: a JSON dictionary, and arrays.

        The arrays of the items, oldest first, are `keys`, `priorities`,
        `times_sampled`, `payloads` `[N, 2]`, `episodes` and `stamps`.
        """
        cut = self.cut()
        cut.copy()
        cut.close()
        return cut.state()

    def cut(self) -> snapshot.TableCut:
        """Returns the state at this time, to be copied by another thread."""
        meta = {
            "counts": list(self._counts),
            "num_unique_samples": self._num_unique_samples,
            "num_deleted_episodes": self._episodes.deleted,
            "random": self._random.bit_generator.state,
        }
        return snapshot.TableCut(self._columns, self._selectors, meta)

    def restore(
        self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> None:
        """Restores the state that `state` returned.

        The same operations then give the same results, including keys and draws.

        Args:
          meta: The dictionary that `state` returned.
          arrays: The arrays that `state` returned.

        Raises:
          ValueError: If the arguments are not the state of a table of at most
            `max_size` items.
        """
        for _ in self.reset():
            pass
        rows = snapshot.to_columns(self._columns, self._max_size, meta, arrays)
        for selector in self._selectors:
            prefix = selector.role + "."
            own = {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            selector.restore(rows, own)
        self._episodes.add(self._columns.episodes[rows])
        self._episodes.deleted = int(meta["num_deleted_episodes"])
        self._counts = rate_limiters.Counts(*(int(n) for n in meta["counts"]))
        self._num_unique_samples = int(meta["num_unique_samples"])
        self._random.bit_generator.state = meta["random"]

    def _stride(self, n: int) -> int:
        """Returns the number of the next `n` inserts that can be made as one batch."""
        room = self._max_size - self._columns.size
        if room:
            return min(n, room)
        # The choice of a random remover changes with every insert.
        ordered = isinstance(self._remover, selectors_lib.OrderedSelector)
        return min(n, self._max_size) if ordered else 1

    def _insert_new(
        self, priorities: np.ndarray, payloads: np.ndarray, episodes: np.ndarray
    ) -> np.ndarray:
        """Inserts items into a table that has room for them; returns their rows."""
        rows = self._columns.take_rows(priorities.size)
        self._columns.write(rows, priorities, payloads, episodes)
        for selector in self._selectors:
            selector.insert(rows)
        self._episodes.add(episodes)
        self._count(inserts=rows.size)
        return rows

    def _insert_over(
        self,
        remover: insertion_order.OldestFirst,
        priorities: np.ndarray,
        payloads: np.ndarray,
        episodes: np.ndarray,
    ) -> np.ndarray:
        """Overwrites the oldest items with new ones; returns the old payloads."""
        columns = self._columns
        rows = remover.first(priorities.size)
        removed = columns.payloads[rows]
        self._episodes.exchange(episodes, columns.episodes[rows])
        columns.write(rows, priorities, payloads, episodes)
        for selector in self._selectors:
            selector.replace(rows)
        self._count(inserts=rows.size, deletes=rows.size)
        return removed

    def _insert_and_evict(
        self, priorities: np.ndarray, payloads: np.ndarray, episodes: np.ndarray
    ) -> np.ndarray:
        """Inserts items into a full table; returns the payloads of the removed items.

        An ordered remover may remove a whole batch of items together. It chooses the
        same items as for single inserts, because the order of the items is the same.
        """
        columns = self._columns
        new = columns.take_rows(priorities.size)
        columns.write(new, priorities, payloads, episodes)
        for selector in self._selectors:
            selector.insert(new)
        if isinstance(self._remover, selectors_lib.OrderedSelector):
            gone = self._remover.first(new.size)
            gone = columns_lib.order_of_removal(gone, new)
        else:
            gone = self._remover.draw(1, self._random)
        self._episodes.exchange(episodes, columns.episodes[gone])
        self._count(inserts=new.size)
        return self._delete(gone)

    def _sample_limited(self, n: int) -> samples_lib.Samples:
        """Samples from a table that deletes items after a number of samples."""
        parts = []
        while n > 0 and self._columns.size >= self._limiter.min_size_to_sample:
            draws = samples_lib.plan(
                self._sampler,
                self._columns,
                n,
                limit=self._max_times_sampled,
                min_size=self._limiter.min_size_to_sample,
                random=self._random,
            )
            part = self._samples(draws.rows, draws.probabilities, draws.sizes)
            removed = samples_lib.pairs(self._forget(draws.last))
            parts.append(part._replace(removed=removed))
            n -= draws.rows.size
        return samples_lib.joined(parts)

    def _samples(
        self, rows: np.ndarray, probabilities: np.ndarray, sizes: np.ndarray
    ) -> samples_lib.Samples:
        """Counts one sample per row and returns the samples."""
        columns = self._columns
        before = columns.times_sampled.take(rows)
        columns.count_samples(rows)
        times = before + np.int32(1)
        new = before == 0
        if not (columns.times_sampled.take(rows) == times).all():
            # An item was drawn several times in this batch.
            ranks = samples_lib.ranks(rows)
            times += ranks.astype(np.int32)
            new &= ranks == 0
        self._num_unique_samples += int(np.count_nonzero(new))
        self._count(samples=rows.size)
        return samples_lib.Samples(
            columns.keys.take(rows),
            probabilities,
            sizes,
            columns.priorities.take(rows),
            times,
            samples_lib.pairs(columns.payloads.take(rows)),
            samples_lib.pairs(samples_lib.NO_PAYLOADS),
        )

    def _forget(self, rows: np.ndarray) -> np.ndarray:
        """Deletes the items in distinct rows; returns their payloads."""
        if rows.size == 0:
            return samples_lib.NO_PAYLOADS
        self._episodes.remove(self._columns.episodes[rows])
        return self._delete(rows)

    def _delete(self, rows: np.ndarray) -> np.ndarray:
        """Deletes items without updating the counts of episodes."""
        removed = self._columns.payloads[rows]
        self._columns.free(rows)
        for selector in self._selectors:
            selector.delete(rows)
        self._count(deletes=rows.size)
        return removed

    def _count(self, inserts: int = 0, samples: int = 0, deletes: int = 0) -> None:
        """Adds to the limiter's counts."""
        counts = self._counts
        self._counts = rate_limiters.Counts(
            counts.inserts + inserts,
            counts.samples + samples,
            counts.deletes + deletes,
        )


def _former_payloads(
    former: list[np.ndarray], counts: list[dict[int, int]]
) -> Iterator[np.ndarray]:
    """Yields the payloads of a table's former items, and frees its former memory.

    Args:
      former: The result of `Columns.clear`.
      counts: The result of `EpisodeCounts.clear`.
    """
    keys, payloads = former[:2]
    for start in range(0, keys.size, _SLICE):
        part = slice(start, start + _SLICE)
        yield samples_lib.pairs(payloads[part][keys[part] != columns_lib.NO_KEY])
    del keys, payloads
    for memory in (former, counts):
        while memory:
            memory.pop()
            yield samples_lib.pairs(samples_lib.NO_PAYLOADS)


_Columns = columns_lib.Columns
_Selector = selectors_lib.OrderedSelector | selectors_lib.RandomSelector

# The function that makes the selector of each strategy.
_MAKERS: dict[type[item_selectors.ItemSelector], Callable[[Any, _Columns], _Selector]]
_MAKERS = {
    item_selectors.Fifo: lambda _, columns: insertion_order.OldestFirst(columns),
    item_selectors.Lifo: lambda _, columns: insertion_order.NewestFirst(columns),
    item_selectors.Uniform: lambda _, columns: selectors_lib.UniformSelector(columns),
    item_selectors.Prioritized: lambda strategy, columns: (
        selectors_lib.PrioritizedSelector(columns, strategy.priority_exponent)
    ),
    item_selectors.MinHeap: lambda _, columns: heap_order.HeapOrder(columns, 1.0),
    item_selectors.MaxHeap: lambda _, columns: heap_order.HeapOrder(columns, -1.0),
}


def make_selector(config: Mapping[str, Any], columns: _Columns) -> _Selector:
    """Returns the selector that implements a configured strategy.

    Args:
      config: The result of `to_config` of an `item_selectors.ItemSelector`.
      columns: The items of the table, still empty.

    Raises:
      ValueError: If the configuration is invalid, or no selector implements it.
    """
    strategy = item_selectors.from_config(config)
    make = _MAKERS.get(type(strategy))
    if make is None:
        known = sorted(kind.__name__ for kind in _MAKERS)
        raise ValueError(
            f"selector: no selector implements {type(strategy).__name__}; expected one "
            f"of {known}. Add it to engine/tables/engine_table.py."
        )
    return make(strategy, columns)


_SLICE = 1 << 13  # Rows whose payloads are removed together.
