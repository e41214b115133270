"""Draws batches from several replay servers as if they were one table."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from tfrl.distribute.shards import batch_shares
from tfrl.distribute.shards.shard import Shard, tagged_keys
from tfrl.replay_service import errors
from tfrl.replay_service.replay_sample import SampleInfo
from tfrl.replay_service.sampling import sampler
from tfrl.replay_service.sampling.rows import Batches, FilledBatch
from tfrl.replay_service.transport import deadlines

_LOGGER = logging.getLogger("tfrl.distribute")
_WAIT = 0.01  # Maximum seconds that a batch waits for one shard at a time.
_FIELDS = len(SampleInfo._fields)


class ShardedStream:
    """A stream of batches. Each shard gives its share; see `batch_shares`.

    If a shard is late, because its server is gone or its rate limiter waits for items,
    the other shards give its rows, and it makes up for them later. A late shard has no
    share until it gives rows again.

    The info of each row describes one table that holds the items of all living shards:
    its key carries the shard, its probability is the shard's share times the
    probability in the shard, and its table size is the sum of the shards' sizes.

    Only one thread may use a stream at a time, but any thread may call `close`.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        open_stream: Callable[[Shard], sampler.SampleStream],
        weighting: batch_shares.Weighting,
        *,
        mixed: bool,
        patience: float,
        timeout: float,
    ) -> None:
        """Creates a stream, which connects when rows are first needed.

        Args:
          shards: The shards. Another thread keeps them up to date.
          open_stream: Opens a stream of one shard.
          weighting: See `batch_shares.shares`.
          mixed: Whether each batch has rows of all shards.
          patience: The number of seconds after which other shards fill a batch.
          timeout: The number of seconds without any living shard after which
            `next_batch` raises an error.
        """
        self._readers = [_Reader(shard, open_stream) for shard in shards]
        self._weighting = weighting
        self._patience = patience
        self._timeout = timeout
        self._apportionment = batch_shares.Apportionment(len(shards), mixed)
        self._batches = Batches(reuse=True)
        self._draft: _Draft | None = None
        self._turn = 0
        self._last_alive = time.monotonic()
        self._closed = False
        self._lock = threading.Lock()
        for reader in self._readers:
            reader.rejoin()
            reader.is_late = False

    def next_batch(
        self, count: int, *, timeout: float | None = None
    ) -> list[np.ndarray] | None:
        """Returns the next `count` rows.

        Args:
          count: The number of rows. After a result of None, pass the same number again.
          timeout: The number of seconds to wait; None for no limit.

        Returns:
          The fields of `SampleInfo`, each `[count]`, followed by the columns of the
          data, each `[count, ...]`; None when time is up.

        Raises:
          Exhausted: If the stream was closed.
          ValueError: If rows differ in shape or do not match the table's signature.
          ReplayUnavailable: If no shard answers for the stream's timeout.
        """
        deadline = deadlines.after(timeout)
        with self._lock:
            if self._draft is None:
                self._draft = self._begin(count)
            draft = self._draft
            while draft.batch.left:
                if self._closed:
                    raise sampler.Exhausted
                if self._collect(draft):
                    continue
                if time.monotonic() > draft.patient_until:
                    self._pass_on(draft, {m for m, n in enumerate(draft.wanted) if n})
                if not any(draft.wanted):
                    self._ask_anyone(draft)
                if deadlines.remaining(deadline) == 0:
                    return None
            self._draft = None
            return self._finish(draft)

    def close(self) -> None:
        """Ends the stream. A call in another thread ends soon."""
        self._closed = True
        for reader in self._readers:
            reader.close()

    def _begin(self, count: int) -> _Draft:
        """Divides a batch among the shards that give rows at present."""
        num_shards = len(self._readers)
        batch = FilledBatch(self._batches, count)
        draft = _Draft(batch, num_shards, time.monotonic() + self._patience)
        most = -(-count // num_shards)
        for reader in self._readers:
            reader.rejoin()
            if reader.is_open and reader.is_late:
                self._take(draft, reader, min(most, draft.batch.left), 0.0)
        draft.share = batch_shares.shares(
            self._weighting,
            [reader.is_prompt * reader.shard.size for reader in self._readers],
            [reader.is_prompt * reader.shard.mass for reader in self._readers],
        )
        if any(draft.share):
            split = self._apportionment.split(draft.share, count)
            draft.wanted = [
                max(n - drawn, 0) for n, drawn in zip(split, draft.drawn, strict=True)
            ]
        return draft

    def _collect(self, draft: _Draft) -> bool:
        """Takes rows that have arrived; waits for one shard for a moment."""
        self._turn += 1
        wait, found = _WAIT, False
        for i in range(len(self._readers)):
            number = (self._turn + i) % len(self._readers)
            most = min(draft.wanted[number], draft.batch.left)
            if most:
                found |= self._take(draft, self._readers[number], most, wait)
                wait = 0.0
        return found

    def _take(self, draft: _Draft, reader: _Reader, most: int, wait: float) -> bool:
        """Adds a shard's rows to a batch; returns whether there were any."""
        number = reader.shard.number
        try:
            count = reader.fill(draft.batch, most, wait)
        except errors.ReplayUnavailable as error:
            _LOGGER.warning(
                "Shard %d at %s is gone (%s): the others fill its share.",
                number,
                reader.shard.address,
                str(error).rstrip("."),
            )
            self._pass_on(draft, {number})
            return False
        if count:
            draft.count(number, count)
            last = draft.batch.filled - 1
            info = SampleInfo(*draft.batch.arrays[:_FIELDS])
            reader.shard.learn(
                float(info.probability[last]),
                int(info.table_size[last]),
                float(info.priority[last]),
            )
        return count > 0

    def _pass_on(self, draft: _Draft, late: set[int]) -> None:
        """Lets other shards give the rows that late shards have not given."""
        count = 0
        for number in late:
            count += draft.wanted[number]
            draft.wanted[number] = 0
            self._readers[number].is_late = True
        able = [
            share * reader.is_prompt
            for share, reader in zip(draft.share, self._readers, strict=True)
        ]
        total = sum(able)
        if count and total:
            quotas = [count * share / total if share else None for share in able]
            for number, more in enumerate(batch_shares.rounded(quotas, count)):
                draft.wanted[number] += more
        draft.patient_until = time.monotonic() + self._patience

    def _ask_anyone(self, draft: _Draft) -> None:
        """Lets any shard fill a batch if no shard with a share gives rows."""
        for reader in self._readers:
            reader.rejoin()
            if reader.is_open:
                draft.wanted[reader.shard.number] = draft.batch.left
        now = time.monotonic()
        if any(draft.wanted):
            self._last_alive = now
        elif now - self._last_alive > self._timeout:
            addresses = ", ".join(reader.shard.address for reader in self._readers)
            raise errors.ReplayUnavailable(
                f"None of the {len(self._readers)} shards, at {addresses}, has "
                f"answered for {self._timeout:g} s; start their servers, or check the "
                "addresses that the resolver returns."
            )
        else:
            time.sleep(_WAIT)

    def _finish(self, draft: _Draft) -> list[np.ndarray]:
        """Returns the rows of a batch with the infos of the whole table."""
        self._apportionment.settle(draft.share, draft.drawn)
        self._last_alive = time.monotonic()
        count = draft.batch.filled
        info = SampleInfo(*draft.batch.arrays[:_FIELDS])
        for number, rows in draft.parts:
            # A shard without a share has given its rows instead of other shards.
            share = draft.share[number] or draft.drawn[number] / count
            info.key[rows] = tagged_keys(info.key[rows], number)
            info.probability[rows] *= share
        info.table_size[:] = sum(
            reader.shard.size for reader in self._readers if reader.shard.is_alive
        )
        return draft.batch.finished()


class _Reader:
    """The stream of one shard.

    Attributes:
      shard: The shard.
      is_late: Whether it gave no rows when it was asked for some.
    """

    def __init__(
        self, shard: Shard, open_stream: Callable[[Shard], sampler.SampleStream]
    ) -> None:
        self.shard = shard
        self.is_late = True
        self._open_stream = open_stream
        self._stream: sampler.SampleStream | None = None
        self._address = ""

    @property
    def is_open(self) -> bool:
        """Whether the server answers and has an open stream."""
        return self.shard.is_alive and self._stream is not None

    @property
    def is_prompt(self) -> bool:
        """Whether the stream is open and the shard is not late."""
        return self.is_open and not self.is_late

    def rejoin(self) -> None:
        """Opens a stream if the server answers and there is none at its address."""
        if self._stream is not None and self._address != self.shard.address:
            self.close()
        if self.shard.is_alive and self._stream is None:
            self.is_late = True
            self._address = self.shard.address
            self._stream = self._open_stream(self.shard)

    def fill(self, batch: FilledBatch, most: int, wait: float) -> int:
        """Adds at most `most` rows to a batch; returns the number that arrived in time.

        Raises:
          ReplayUnavailable: If the server is gone.
        """
        if self._stream is None:
            return 0
        try:
            count = self._stream.fill(batch, most, timeout=wait)
        except errors.ReplayUnavailable:
            self.close()
            self.shard.is_alive = False
            raise
        if count:
            self.is_late = False
        return count

    def close(self) -> None:
        """Closes the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class _Draft:
    """A batch that is not complete.

    Attributes:
      batch: Its rows so far.
      patient_until: The time until which to wait for late shards.
      share: The share of each shard.
      wanted: The number of rows that each shard has to give.
      drawn: The number of rows that each shard has given.
      parts: The positions of the rows that each shard has given.
    """

    def __init__(
        self, batch: FilledBatch, num_shards: int, patient_until: float
    ) -> None:
        self.batch = batch
        self.patient_until = patient_until
        self.share = [0.0] * num_shards
        self.wanted = [0] * num_shards
        self.drawn = [0] * num_shards
        self.parts: list[tuple[int, slice]] = []

    def count(self, shard: int, count: int) -> None:
        """Records that a shard has given the last `count` rows."""
        filled = self.batch.filled
        self.parts.append((shard, slice(filled - count, filled)))
        self.drawn[shard] += count
        self.wanted[shard] = max(self.wanted[shard] - count, 0)
