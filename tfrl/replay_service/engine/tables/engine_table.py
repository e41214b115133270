"""A table of items: who may insert and sample, which item is next, and which one goes.

All operations take batches, and leave the table and return what the same operations one
by one would, in less time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import draws as draws_lib
from tfrl.replay_service.engine.tables import episodes as episodes_lib
from tfrl.replay_service.engine.tables import samples as samples_lib
from tfrl.replay_service.engine.tables import selector_factory, snapshot, waiting
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_ONE = np.int32(1)  # Adding a Python int at places is five times slower.


class EngineTable:
    """A table as the server has it."""

    def __init__(self, options: Mapping[str, Any], seed: int | None = None) -> None:
        """Creates an empty table.

        Args:
          options: `name`, `max_size`, `max_times_sampled` (below 1: no limit),
            `sampler`, `remover` and `rate_limiter` (what their `to_config` returns) and
            `signature`, which the table only hands on.
          seed: Of the draws of random selectors; None for one nobody knows.

        Raises:
          ValueError: If the selectors or the limiter are none, or the limiter can never
            let anything be sampled.
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
        self._sampler = selector_factory.make(options["sampler"], self._columns)
        self._remover = self._sampler
        if options["remover"] != options["sampler"]:
            self._remover = selector_factory.make(options["remover"], self._columns)
        self._selectors: list[selectors_lib.Selector] = list(
            dict.fromkeys([self._sampler, self._remover])
        )
        self._episodes = episodes_lib.EpisodeCounts()
        self._counts = rate_limiters.Counts()
        self._num_unique_samples = 0

    def __len__(self) -> int:
        """Returns how many items there are."""
        return self._columns.size

    def insertable(self, n: int) -> int:
        """Returns how many of the next `n` inserts the limiter lets through now."""
        return rate_limiters.num_inserts(self._limiter, self._counts, n)

    def sampleable(self, n: int) -> int:
        """Returns how many of the next `n` samples the limiter lets through now.

        They are fewer where samples delete items until there are too few.
        """
        return rate_limiters.num_samples(self._limiter, self._counts, n)

    def insert(
        self, priorities: np.ndarray, payloads: np.ndarray, episodes: np.ndarray
    ) -> np.ndarray:
        """Inserts items, and removes others if the table is full.

        An item is inserted before the remover chooses, which may choose the new one.

        Args:
          priorities: `[N]` float64, where `N` is at most `insertable(N)`.
          payloads: `[N, 2]` int32, which come back with samples and on removal.
          episodes: `[N]` int64, the episodes of the items.

        Returns:
          `[K, 2]` int32, the payloads of the items that were removed.

        Raises:
          ValueError: If a priority is negative or not finite; nothing is inserted then.
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
            elif isinstance(self._remover, selectors_lib.OldestFirst):
                removed.append(self._insert_over(self._remover, *batch))
            else:
                removed.append(self._insert_and_evict(*batch))
            start = stop
        return samples_lib.pairs(np.concatenate([samples_lib.NO_PAYLOADS, *removed]))

    def sample(self, n: int) -> samples_lib.Samples:
        """Samples up to `n` items: as many as the limiter lets through now, maybe none.

        An item is deleted right after the sample that is the last it may have.
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
        """Deletes items, and then sets priorities of others; unknown keys are ignored.

        Args:
          keys: `[N]` uint64; of a key that is there twice the last priority counts.
          priorities: `[N]` float64.
          delete_keys: `[M]` uint64.

        Returns:
          `[K, 2]` int32, the payloads of the items that were deleted.

        Raises:
          ValueError: If a priority is negative or not finite, or if there is not one to
            every key; nothing is changed then.
        """
        keys = np.asarray(keys, np.uint64)
        priorities = selectors_lib.checked(priorities, self._selectors)
        if keys.shape != priorities.shape:
            raise ValueError(
                f"priorities: {priorities.size} came for {keys.size} keys; expected as "
                "many. Give every key its priority."
            )
        removed = samples_lib.NO_PAYLOADS
        if len(delete_keys):
            rows, _ = self._columns.find(np.asarray(delete_keys, np.uint64))
            removed = self._forget(np.unique(rows))
        rows, found = self._columns.find(keys)
        if rows.size:
            if rows.size < keys.size:
                priorities = priorities[found]
            self._columns.set_priorities(rows, priorities)
            for selector in self._selectors:
                selector.update(rows)
        return samples_lib.pairs(removed)

    def reset(self) -> np.ndarray:
        """Removes all items and forgets all counts; returns the payloads `[K, 2]`."""
        removed = self._columns.payloads[self._columns.living()]
        self._columns.clear()
        for selector in self._selectors:
            selector.clear()
        self._episodes.clear()
        self._counts = rate_limiters.Counts()
        self._num_unique_samples = 0
        return samples_lib.pairs(removed)

    def info(self) -> dict[str, Any]:
        """Returns the fields of a Reverb `TableInfo`, and the `num_deleted_items`.

        JSON can hold them: infinite bounds of the limiter are strings, as in its
        `to_config`.
        """
        return {
            "name": self.name,
            "sampler_options": _options(self.options["sampler"]),
            "remover_options": _options(self.options["remover"]),
            "max_size": self._max_size,
            "max_times_sampled": self._max_times_sampled,
            "rate_limiter_info": {
                **self._limiter.to_config(),
                "insert_stats": {"completed": self._counts.inserts},
                "sample_stats": {"completed": self._counts.samples},
            },
            "signature": self.options.get("signature"),
            "current_size": self._columns.size,
            "num_episodes": len(self._episodes),
            "num_deleted_episodes": self._episodes.deleted,
            "num_unique_samples": self._num_unique_samples,
            "num_deleted_items": self._counts.deletes,
        }

    def waiting_to_insert(self) -> str:
        """Returns a sentence that says what an insert waits for."""
        return waiting.to_insert(self.name, self._limiter, self._counts)

    def waiting_to_sample(self) -> str:
        """Returns a sentence that says what a sample waits for."""
        return waiting.to_sample(self.name, self._limiter, self._counts)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Returns what `restore` needs: a dictionary for JSON, and arrays.

        The arrays of the items, the oldest first, are `keys`, `priorities`,
        `times_sampled`, `payloads` `[N, 2]`, `episodes` and `stamps`.
        """
        columns = self._columns
        meta, arrays = snapshot.of_columns(columns, self._by_age())
        for name, selector in self._roles().items():
            for key, array in selector.state().items():
                arrays[f"{name}.{key}"] = array
        meta["counts"] = list(self._counts)
        meta["num_unique_samples"] = self._num_unique_samples
        meta["num_deleted_episodes"] = self._episodes.deleted
        meta["random"] = self._random.bit_generator.state
        return meta, arrays

    def restore(
        self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> None:
        """Makes the table what it was when `state` returned the arguments.

        The same operations then give the same results, keys and draws included.

        Raises:
          ValueError: If they are no state of a table of this size.
        """
        self.reset()
        rows = snapshot.to_columns(self._columns, self._max_size, meta, arrays)
        for name, selector in self._roles().items():
            start = len(name) + 1
            own = {k[start:]: v for k, v in arrays.items() if k.startswith(name + ".")}
            selector.restore(rows, own)
        self._episodes.add(self._columns.episodes[rows])
        self._episodes.deleted = int(meta["num_deleted_episodes"])
        self._counts = rate_limiters.Counts(*(int(n) for n in meta["counts"]))
        self._num_unique_samples = int(meta["num_unique_samples"])
        self._random.bit_generator.state = meta["random"]

    def _roles(self) -> dict[str, selectors_lib.Selector]:
        """Returns the selectors by what they are for, each one once."""
        return dict(zip(("sampler", "remover"), self._selectors, strict=False))

    def _by_age(self) -> np.ndarray:
        """Returns the rows of all items, the oldest first."""
        for selector in self._selectors:
            if isinstance(selector, selectors_lib.InsertionOrder):
                return selector.by_age()
        return self._columns.by_age()

    def _stride(self, n: int) -> int:
        """Returns how many of the next `n` inserts can be made as one batch."""
        room = self._max_size - self._columns.size
        if room:
            return min(n, room)
        # What a random remover chooses changes with every insert.
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
        remover: selectors_lib.OldestFirst,
        priorities: np.ndarray,
        payloads: np.ndarray,
        episodes: np.ndarray,
    ) -> np.ndarray:
        """Inserts items in place of the oldest; returns the payloads of those."""
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
        """Inserts items into a full table and lets its remover choose as many.

        What an ordered remover chooses one by one, out of all that have come by then,
        is what it would choose out of all: its choice is the first of the same order.
        """
        columns = self._columns
        new = columns.take_rows(priorities.size)
        columns.write(new, priorities, payloads, episodes)
        for selector in self._selectors:
            selector.insert(new)
        if isinstance(self._remover, selectors_lib.OrderedSelector):
            gone = self._remover.first(new.size)
            gone = episodes_lib.order_of_removal(gone, new)
        else:
            gone = self._remover.draw(1, self._random)
        self._episodes.exchange(episodes, columns.episodes[gone])
        self._count(inserts=new.size)
        return self._delete(gone)

    def _sample_limited(self, n: int) -> samples_lib.Samples:
        """Samples from a table that deletes items after some samples."""
        parts = []
        while n > 0 and self._columns.size >= self._limiter.min_size_to_sample:
            draws = draws_lib.plan(
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
        """Counts the samples of rows and returns them."""
        columns = self._columns
        before = columns.times_sampled.take(rows)
        np.add.at(columns.times_sampled, rows, _ONE)
        times = before + _ONE
        new = before == 0
        if not (columns.times_sampled.take(rows) == times).all():
            # Some items were drawn several times.
            ranks = draws_lib.ranks(rows)
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
        """Deletes items, each there once; returns their payloads."""
        if rows.size == 0:
            return samples_lib.NO_PAYLOADS
        self._episodes.remove(self._columns.episodes[rows])
        return self._delete(rows)

    def _delete(self, rows: np.ndarray) -> np.ndarray:
        """Deletes items, of whose episodes the caller takes care."""
        removed = self._columns.payloads[rows]
        self._columns.free(rows)
        for selector in self._selectors:
            selector.delete(rows)
        self._count(deletes=rows.size)
        return removed

    def _count(self, inserts: int = 0, samples: int = 0, deletes: int = 0) -> None:
        """Adds to the counts of the limiter."""
        counts = self._counts
        self._counts = rate_limiters.Counts(
            counts.inserts + inserts,
            counts.samples + samples,
            counts.deletes + deletes,
        )


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a selector's configuration as a `TableInfo` has it."""
    return item_selectors.from_config(config).options()
