"""A client of several replay servers that are used as one table."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl import replay_service
from tfrl.distribute.shards import batch_shares, limiter_windows, sharded_stream
from tfrl.distribute.shards.shard import (
    MOST_ITEMS,
    MOST_SHARDS,
    SILENCE,
    Shard,
    in_daemon_thread,
    split_keys,
)
from tfrl.replay_service import errors, table_info
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo
from tfrl.replay_service.sampling import sampler
from tfrl.replay_service.writing.stream import BATCH
from tfrl.utils import number_checks

if TYPE_CHECKING:
    import tensorflow as tf

_LOGGER = logging.getLogger("tfrl.distribute")
_PERIOD = 1.0  # Seconds between questions to each shard.


class ShardedClient:
    """Uses the tables of one name in several replay servers as one table.

        client = ShardedClient(["host-a:8000", "host-b:8000"], "experience")
        for sample in client.as_dataset(batch_size=64):
            ...
            client.update_priorities(sample.info.key, priorities)

    The servers are the shards, in the order of their addresses. They know nothing of
    each other. Each holds the items of its own writers; see `HomeShard`. If a server
    does not answer, batches come from the other servers, and updates of its priorities
    are dropped. When it answers again, even at another address, it is used again.

    All threads may use a client. It does not import TensorFlow, except for
    `as_dataset`.
    """

    def __init__(
        self,
        addresses: Sequence[str] | Callable[[], Sequence[str]],
        table: str,
        *,
        items_per_message: int = BATCH,
        patience: float = 1.0,
        timeout: float = 5.0,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
    ) -> None:
        """Connects to the servers.

        Args:
          addresses: The servers' addresses, "host:port", or a function that returns
            them. The function is called again when a server does not answer; it must
            keep the order, because keys and writers refer to a server by its number.
          table: The name of the table in each server.
          items_per_message: The largest number of items that a writer sends together.
          patience: The number of seconds to wait for one server.
          timeout: The number of seconds without an answer after which a writer gives up
            its server, and a sampler gives up all servers.
          token: The servers' token; by default the environment variable
            TFRL_REPLAY_TOKEN.
          tls_root_certificates: See `replay_service.Client`.

        Raises:
          ValueError: If there is no address or there are too many, a server has no such
            table or another signature, a table is too large, or the window of a rate
            limiter is too narrow for one message; see `check_windows`.
          ReplayUnavailable: If no server answers.
        """
        self._resolve = addresses if callable(addresses) else lambda: addresses
        found = list(self._resolve())
        if not 1 <= len(found) <= MOST_SHARDS:
            raise ValueError(
                f"addresses: got {len(found)}, expected 1 to {MOST_SHARDS}; "
                "start a replay server, or fewer and larger ones."
            )
        self._table = table
        self._patience = patience
        self._timeout = timeout
        self._access: dict[str, Any] = {
            "token": token,
            "tls_root_certificates": tls_root_certificates,
        }
        self._shards = [
            Shard(number, address, table, {**self._access, "timeout": timeout})
            for number, address in enumerate(found)
        ]
        self._stop = threading.Event()
        weakref.finalize(self, self._stop.set)
        self._lock = threading.Lock()
        self._is_watching = False
        self._items_per_message = items_per_message
        self._infos = self._first_infos()
        _check_tables(self._infos)
        self.check_windows(0)

    @property
    def num_shards(self) -> int:
        """The number of servers."""
        return len(self._shards)

    @property
    def addresses(self) -> list[str]:
        """The servers' present addresses."""
        return [shard.address for shard in self._shards]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self._table

    @property
    def label(self) -> str:
        """The name that stands for the address in the records of a dataset's errors."""
        return f"shards {id(self)}"

    @property
    def signature(self) -> Any:
        """The nest of `tf.TensorSpec`s of an item; None if the table has none."""
        return self._infos[0].signature

    @property
    def is_prioritized(self) -> bool:
        """Whether the table draws items by their priorities."""
        return bool(self._infos[0].sampler_options.HasField("prioritized"))

    @property
    def max_size(self) -> int:
        """The maximum number of items in all shards together."""
        return sum(info.max_size for info in self._infos)

    def check_windows(self, samples_per_draw: int) -> None:
        """Checks that the rate limiters cannot block writers and learner for ever.

        Args:
          samples_per_draw: The number of items that the learner draws from one shard at
            a time.

        Raises:
          ValueError: If a window is too narrow; see `limiter_windows.check`.
        """
        limiter_windows.check(
            self._infos,
            items_per_message=self._items_per_message,
            samples_per_draw=samples_per_draw,
        )

    def living_client(self, shard: int) -> replay_service.Client | None:
        """Returns a client of a shard's server if it answers now, else None.

        If the server does not answer, the addresses are resolved again.

        Args:
          shard: The number of the shard.
        """
        found = self._shards[shard]
        return None if self._refresh(found) is None else found.client

    def table_infos(self) -> list[table_info.TableInfo | None]:
        """Returns the `TableInfo` of each shard; None for one that does not answer."""
        return [self._info_of(shard) for shard in self._shards]

    def num_items(self) -> int:
        """Returns the number of items in the living shards."""
        return sum(info.current_size for info in self.table_infos() if info)

    def stream(
        self,
        weighting: batch_shares.Weighting = "size",
        max_in_flight: int = 64,
        *,
        mixed: bool = True,
    ) -> sharded_stream.ShardedStream:
        """Opens a stream of batches of NumPy arrays, which the caller closes.

        Args:
          weighting: The rule for each shard's number of rows; see
            `batch_shares.shares`.
          max_in_flight: The maximum number of samples that all servers together draw
            ahead of their use.
          mixed: See `as_dataset`.

        Raises:
          ValueError: If there is no such weighting.
        """
        batch_shares.check_weighting(weighting)
        self.table_infos()  # The first shares depend on these answers.
        self._watch()
        ahead = -(-max_in_flight // self.num_shards)

        def open_stream(shard: Shard) -> sampler.SampleStream:
            return sampler.SampleStream(
                shard.address,
                self._table,
                max_in_flight=ahead,
                timeout=self._patience,
                **self._access,
            )

        return sharded_stream.ShardedStream(
            self._shards,
            open_stream,
            weighting,
            mixed=mixed,
            patience=self._patience,
            timeout=self._timeout,
        )

    def as_dataset(
        self,
        batch_size: int,
        weighting: batch_shares.Weighting = "size",
        max_in_flight: int | None = None,
        *,
        mixed: bool = True,
    ) -> tf.data.Dataset:
        """Returns a dataset of batches of items, like `TrajectoryDataset.batch`.

        Args:
          batch_size: The number of items `B` of an element.
          weighting: The rule for each shard's number of items: "size" for uniform
            tables, "mass" for prioritized tables, "equal" for the same number from each
            shard. The `info.probability` is right with all rules.
          max_in_flight: The maximum number of samples that all servers together draw
            ahead of their use; by default three batches, or one per shard if batches
            are not mixed and there are more than three shards.
          mixed: Whether each batch has rows of all shards, as a batch of one table
            would. If not, the shards give whole batches in turn, in proportion to their
            shares. This is faster, and suits algorithms in which the items of a batch
            may come from the same few actors.

        Returns:
          A dataset of `ReplaySample(info, data)`: infos `[B]`, and data `[B, ...]` in
          the structure of the table's signature.

        Raises:
          ValueError: If the table has no signature, a number is not positive, there is
            no such weighting, or a rate limiter's window is too narrow for the batch;
            see `check_windows`.
        """
        import tensorflow as tf

        from tfrl.replay_service.sampling import dataset, generator, interrupts

        number_checks.check_sizes(batch_size=batch_size)
        number_checks.check_sizes(optional=True, max_in_flight=max_in_flight)
        batch_shares.check_weighting(weighting)
        signature = self.signature
        if signature is None:
            raise ValueError(
                f"table: {self.table!r} has no signature, expected one, which defines "
                "the dataset's elements; make the table with a signature."
            )
        spec = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([batch_size, *leaf.shape], leaf.dtype),
            ReplaySample(
                SampleInfo(
                    *map(tf.TensorSpec, SampleInfo.tf_shapes(), SampleInfo.tf_dtypes())
                ),
                dataset.without_lists(signature),
            ),
        )
        self.check_windows(-(-batch_size // self.num_shards) if mixed else batch_size)
        ahead = max_in_flight
        if ahead is None:
            # A shard that gives whole batches needs room for one batch ahead.
            ahead = batch_size * (3 if mixed else max(3, self.num_shards))
        opener = generator.register(lambda: self.stream(weighting, ahead, mixed=mixed))
        interrupts.WATCH.start()
        variant = generator.batches(
            tf.nest.flatten(spec),
            tf.constant(self.label),
            tf.constant(self.table),
            tf.constant(json.dumps({"opener": opener})),
            tf.constant(batch_size, tf.int64),
            tf.constant(True),
        )
        return dataset.from_variant(variant, spec)

    def update_priorities(self, keys: Any, priorities: Any) -> None:
        """Updates the priorities of items. Ignores unknown keys, and dead shards.

        Args:
          keys: uint64 `[N]`, keys from this client's samples, which carry their shards.
          priorities: float64 `[N]`, the new priorities.

        Raises:
          ValueError: If a priority is negative or not finite, the arrays differ in
            length, or a key is not of one of these shards.
        """
        self._mutate(keys, priorities, ())

    def mutate_priorities(
        self,
        updates: Mapping[int, float] | None = None,
        deletes: Sequence[int] | None = None,
    ) -> None:
        """Deletes items, then updates priorities of others; see `update_priorities`.

        Args:
          updates: The new priority of each item, by its key.
          deletes: The keys of the items to delete.

        Raises:
          ValueError: If a priority is negative or not finite, or a key is not of one of
            these shards.
        """
        updates = updates or {}
        self._mutate(list(updates), list(updates.values()), deletes or ())

    def reset(self) -> None:
        """Removes all items of the living shards, and resets their rate limiters."""
        for shard in self._shards:
            if self._info_of(shard) is not None:
                shard.client.reset(self._table)

    def checkpoint(self) -> list[str | None]:
        """Makes all living servers write a checkpoint at the same time.

        Returns:
          The paths on the servers' hosts; None for a shard that does not answer, or
          that stops answering while it writes.
        """
        written = [
            in_daemon_thread(shard.client.checkpoint)
            if self._info_of(shard) is not None
            else None
            for shard in self._shards
        ]
        return list(map(self._checkpoint_of, self._shards, written))

    def close(self) -> None:
        """Ends the thread that queries the servers. Users of streams close them."""
        self._stop.set()

    def _mutate(self, keys: Any, priorities: Any, deletes: Any) -> None:
        keys, priorities = np.asarray(keys, np.uint64), np.asarray(priorities, float)
        if keys.shape != priorities.shape:
            raise ValueError(
                f"priorities: got {priorities.size} for {keys.size} keys, expected as "
                "many; pass one priority per key."
            )
        updated, own_keys = self._split(keys)
        deleted, own_deletes = self._split(np.asarray(deletes, np.uint64))
        self._watch()
        for number in np.union1d(updated, deleted).tolist():
            here, gone = updated == number, deleted == number
            self._mutate_shard(
                self._shards[number],
                dict(
                    zip(own_keys[here].tolist(), priorities[here].tolist(), strict=True)
                ),
                own_deletes[gone].tolist(),
            )

    def _mutate_shard(
        self, shard: Shard, updates: Mapping[int, float], deletes: Sequence[int]
    ) -> None:
        if not shard.is_alive:
            return
        try:
            shard.client.mutate_priorities(
                self._table, updates, deletes, timeout=self._patience
            )
        except SILENCE as error:
            shard.is_alive = False
            _LOGGER.warning(
                "Shard %d at %s does not answer (%s): updates of its priorities are "
                "dropped until it does.",
                shard.number,
                shard.address,
                str(error).rstrip("."),
            )

    def _split(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers, own = split_keys(keys)
        if numbers.size and numbers.max() >= self.num_shards:
            raise ValueError(
                f"keys: got a key of shard {numbers.max()}, expected one of the "
                f"{self.num_shards} shards; pass keys of this client's samples."
            )
        return numbers, own

    def _checkpoint_of(
        self, shard: Shard, written: futures.Future[str] | None
    ) -> str | None:
        """Waits for a checkpoint as long as its server answers; returns its path."""
        while written is not None:
            if futures.wait([written], _PERIOD).done:
                with contextlib.suppress(*SILENCE):
                    return written.result()
                break
            if self._info_of(shard) is None:
                break
        _LOGGER.warning(
            "Shard %d at %s does not answer: it writes no checkpoint.",
            shard.number,
            shard.address,
        )
        return None

    def _info_of(self, shard: Shard) -> table_info.TableInfo | None:
        """Asks a server about its table, unless a thread waits for its answer."""
        if self._is_watching and not shard.is_alive:
            return None
        return self._refresh(shard)

    def _refresh(self, shard: Shard) -> table_info.TableInfo | None:
        """Asks a server about its table, at its new address if it has moved."""
        info = shard.refresh(self._patience)
        if info is None:
            address = self._address_of(shard)
            if address != shard.address:
                _LOGGER.info("Shard %d is at %s now.", shard.number, address)
                shard.move(address)
                info = shard.refresh(self._patience)
        return info

    def _address_of(self, shard: Shard) -> str:
        with self._lock:
            addresses = list(self._resolve())
        if len(addresses) != self.num_shards:
            raise ValueError(
                f"addresses: the function returned {len(addresses)} addresses, after "
                f"{self.num_shards} at first; return one of each shard, the last known "
                "one of a shard that is gone."
            )
        return addresses[shard.number]

    def _first_infos(self) -> list[table_info.TableInfo]:
        give_up = time.monotonic() + self._timeout
        while True:
            infos = [info for info in self.table_infos() if info is not None]
            if infos:
                return infos
            if time.monotonic() > give_up:
                raise errors.ReplayUnavailable(
                    f"None of the {self.num_shards} shards, at "
                    f"{', '.join(self.addresses)}, answered within {self._timeout:g} "
                    "s; start their servers, or check the addresses."
                )

    def _watch(self) -> None:
        """Starts to ask each server regularly, in threads that end with the client."""
        with self._lock:
            if self._is_watching:
                return
            self._is_watching = True
        for shard in self._shards:
            threading.Thread(
                target=_watch, args=(weakref.ref(self), shard, self._stop), daemon=True
            ).start()


def _watch(
    reference: weakref.ref[ShardedClient], shard: Shard, stop: threading.Event
) -> None:
    """Keeps a shard up to date until `stop` is set."""
    while not stop.wait(_PERIOD):
        client = reference()
        if client is None:
            return
        try:
            client._refresh(shard)
        except Exception as error:  # An error of the caller's function, for example.
            shard.is_alive = False
            _LOGGER.warning("Shard %d cannot be used: %s", shard.number, error)
        del client


def _check_tables(infos: Sequence[table_info.TableInfo]) -> None:
    largest = max(info.max_size for info in infos)
    if largest > MOST_ITEMS:
        raise ValueError(
            f"table: got max_size {largest}, expected at most {MOST_ITEMS} "
            "items in each shard, so that keys have room for the shard; lower max_size "
            "or use more shards."
        )
    first = infos[0]
    for info in infos[1:]:
        if info.signature_json != first.signature_json:
            raise ValueError(
                f"table: got shards with different signatures of {first.name!r}, "
                f"{first.signature} and {info.signature}, expected one; start all "
                "servers with the same tables."
            )
