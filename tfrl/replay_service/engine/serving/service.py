"""The state that all sessions of a server share: tables, steps and wait queues.

Everything here runs in the thread of the asyncio loop.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hmac
import logging
import secrets
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tfrl.replay_service import checkpointers, errors
from tfrl.replay_service.engine.checkpoints import server_checkpoint
from tfrl.replay_service.engine.serving.requests import Caller, shown
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.engine.storage.layouts import Layouts
from tfrl.replay_service.engine.storage.memory import LargeMemory
from tfrl.replay_service.engine.storage.step_store import StepStore
from tfrl.replay_service.engine.tables.engine_table import EngineTable
from tfrl.replay_service.transport import framing, wire
from tfrl.specs import spec_json

LOGGER = logging.getLogger("tfrl.replay_service.server")

SLICE = 256  # Items processed for one session before another has its turn.
_TURN = 0.001  # Seconds after which other callbacks have their turn.
_TICK = 1.0  # Seconds between checks for long waits.
_LONG_WAIT = 10.0  # Seconds after which a client is told why it waits.
_SPARE_TICKS = 10  # Ticks after which memory that was not needed is given back.
_MAX_WRITERS = 10_000  # Maximum number of writers with a record.
# Stores in memory that clients can map. Each store takes two of the server's open
# files, and as many addresses as the machine has bytes of memory. A client maps at most
# this number of stores.
_MOST_MAPPED = 64
_FEW_STORES = 64  # Unused stores are kept while there are no more stores than this.
_MOST_REFUSALS = 20  # Refusals logged in one period; others are only counted.
_PERIOD = 10.0  # Seconds.
_MOST_LOCAL = 512  # Connections of the Unix socket, which only this user can open.
_MOST_REMOTE = 256  # Connections of clients that know the token, if there is one.


class TableWaitQueues:
    """A table, and the queues of the sessions that wait for its rate limiter.

    Attributes:
      table: The table.
      signature: The JSON of the table's signature; None without a signature.
      leaves: The flat signature; None without a signature.
      samplers: Sessions that wait to sample, in order of arrival.
      inserters: Sessions that wait to insert, in order of arrival.
    """

    def __init__(self, table: EngineTable, signature: Any):
        """Creates empty queues.

        Args:
          table: The table.
          signature: The JSON of the table's signature; None without a signature.
        """
        self.table = table
        self.signature = signature
        self.leaves = None if signature is None else spec_json.leaves(signature)
        self.samplers: collections.deque[Caller] = collections.deque()
        self.inserters: collections.deque[Caller] = collections.deque()
        self._wakes = False
        self._samplers_first = False
        self._has_changed = False
        self._changed_at = float("-inf")

    def changed(self) -> None:
        """Schedules the wake-up of waiting sessions after a change of the table."""
        self._has_changed = True
        if (self.samplers or self.inserters) and not self._wakes:
            self._wakes = True
            asyncio.get_running_loop().call_soon(self._wake)

    def stands_still_since(self, seconds: float) -> bool:
        """Whether the table has not changed since a time; called at each tick."""
        if self._has_changed:
            self._has_changed = False
            self._changed_at = asyncio.get_running_loop().time()
        return self._changed_at <= seconds

    def waiting_text(self, queue: collections.deque[Caller]) -> str:
        """Returns a sentence: why the sessions in `queue` have to wait."""
        if queue is self.inserters:
            return self.table.waiting_to_insert()
        return self.table.waiting_to_sample()

    def _wake(self) -> None:
        """Lets waiting sessions proceed; others have their turns after a while."""
        self._wakes = False
        loop = asyncio.get_running_loop()
        end = loop.time() + _TURN
        queues = [
            (self.inserters, self.table.insertable),
            (self.samplers, self.table.sampleable),
        ]
        if self._samplers_first:
            queues.reverse()
        self._samplers_first = False
        for queue, possible in queues:
            # Sessions that return to the queue have had their turn.
            for _ in range(len(queue)):
                if not queue or not possible(1):
                    break
                queue.popleft().proceed()
                if loop.time() > end:
                    self._samplers_first = queue is self.inserters
                    self.changed()
                    return


class WriterRecord:
    """The server's record of a writer, which outlives the writer's sessions.

    Attributes:
      index: A number that distinguishes the writer's episodes from other writers'.
      confirmed: The number of the writer's last inserted item.
      session: The writer's current session, or None.
    """

    __slots__ = ("confirmed", "index", "session")

    def __init__(self, index: int, confirmed: int = 0):
        """Creates the record of a writer without a session.

        Args:
          index: See the attribute.
          confirmed: See the attribute.
        """
        self.index = index
        self.confirmed = confirmed
        self.session: Caller | None = None


class Service:
    """The state of a server, which its sessions share."""

    def __init__(
        self,
        tables: Sequence[Mapping[str, Any]],
        *,
        seed: int | None = None,
        token: str | None = None,
        shared: bool = True,
        checkpointer: checkpointers.DefaultCheckpointer | None = None,
    ):
        """Creates empty tables.

        Args:
          tables: The options of each table.
          seed: The seed of all random choices; None for a random seed.
          token: The token that clients must send; None to require no token.
          shared: Whether steps are stored in memory that other processes can map.
          checkpointer: Writes the checkpoints; by default to a temporary directory.
        """
        seeds = np.random.SeedSequence(seed).generate_state(len(tables))
        self.tables: Mapping[str, Any] = {
            str(options["name"]): TableWaitQueues(
                EngineTable(dict(options), seed=int(table_seed)),
                options.get("signature"),
            )
            for options, table_seed in zip(tables, seeds, strict=True)
        }
        self.server_id = secrets.token_hex(8)
        self.secret = secrets.token_hex(16)
        self.local: dict[str, Any] | None = None  # The addresses of the Unix sockets.
        self.sessions: set[Caller] = set()
        self.newcomers = Newcomers()
        self.kept = 0  # Bytes of messages that wait for their turn.
        self.unsent = 0  # Bytes of messages that clients have not received yet.
        self.incoming = memory.Reserved()  # Memory of incomplete messages.
        self.layouts = Layouts()
        self.background = BackgroundWork()
        self.memory = LargeMemory(self.background.add)
        self.shared = shared
        self.stores: dict[tuple[Any, ...], StepStore] = {}
        self.writers: collections.OrderedDict[str, WriterRecord] = (
            collections.OrderedDict()
        )
        self._next_writer = 1
        self._next_schema = 0
        self._mapped = 0  # The number of stores that clients can map.
        self._most_stores = _FEW_STORES  # Unused stores are looked for at this number.
        self._digest = None if token is None else framing.token_digest(token)
        self.checkpointer = checkpointer or checkpointers.TempDirCheckpointer()
        # The last checkpoint that was written, or from which the server started.
        self.last_checkpoint: str | None = None
        self._checkpointing = asyncio.Lock()
        self.events = EventLog()
        self._ticker: asyncio.TimerHandle | None = None
        self._ticks = 0

    def start(self) -> None:
        """Starts the task that gives back memory, and tells clients why they wait."""
        self._ticker = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def stop(self) -> None:
        """Ends all sessions."""
        if self._ticker is not None:
            self._ticker.cancel()
        for session in list(self.sessions):
            session.close()

    def queues_of(self, name: Any) -> TableWaitQueues:
        """Returns the table with this name, and its queues.

        Raises:
          RuntimeError: If there is no such table.
        """
        try:
            return self.tables[name]
        except (KeyError, TypeError):
            raise RuntimeError(f"Priority table {shown(name)} was not found") from None

    def store(self, schema: tuple[tuple[str, tuple[int, ...]], ...]) -> StepStore:
        """Returns the store of the steps of one schema, and creates it if it is new.

        Creating a store may drop stores without steps. If there are many schemas, for
        example one for each length of an array, only some stores are in memory that
        clients can map. Samples of other stores are sent in messages.

        Args:
          schema: The dtype's name and the shape of each column.
        """
        found = self.stores.get(schema)
        if found is None:
            if len(self.stores) >= self._most_stores:
                self._drop_unused_stores()
            shared = self.shared and self._mapped < _MOST_MAPPED
            found = StepStore(self._next_schema, list(schema), shared)
            self._next_schema += 1
            self._mapped += found.fd is not None
            self.stores[schema] = found
        return found

    def remove(self, payloads: np.ndarray) -> None:
        """Releases the steps of removed items; if there are many, in the background."""
        if len(payloads):
            self.background.add(self.layouts.removing(payloads))

    async def checkpoint(self) -> str:
        """Writes a checkpoint and returns its path. Concurrent calls wait in order.

        The checkpoint has the state of one moment. Other threads do the work, while
        this one answers requests.

        Raises:
          OSError: If the checkpoint cannot be written.
        """
        async with self._checkpointing:
            taken = server_checkpoint.ServerSnapshot(self)
            try:
                await asyncio.to_thread(taken.copy)
                taken.close()
                self.last_checkpoint = await asyncio.to_thread(
                    server_checkpoint.write,
                    taken,
                    self.checkpointer.path,
                    self.last_checkpoint,
                )
                return self.last_checkpoint
            finally:
                self.background.add(taken.release())

    def find_store(self, schema_id: Any) -> StepStore | None:
        """Returns the store of this schema, or None."""
        for store in self.stores.values():
            if store.schema_id == schema_id:
                return store
        return None

    def writer(self, writer_id: str | None) -> WriterRecord:
        """Returns the record of a writer. Creating one may drop old records."""
        if writer_id is not None and writer_id in self.writers:
            self.writers.move_to_end(writer_id)
            return self.writers[writer_id]
        writer = WriterRecord(self._next_writer)
        self._next_writer += 1
        if writer_id is not None:
            self.writers[writer_id] = writer
            self._forget_writers()
        return writer

    def admits(self, digest: Any) -> bool:
        """Returns whether a client with this digest of a token may connect over TCP."""
        return self._digest is None or _same(digest, self._digest)

    def admits_locally(self, secret: Any) -> bool:
        """Returns whether a client with this secret may connect on this host."""
        return isinstance(secret, str) and _same(secret.encode(), self.secret.encode())

    def welcome(self, is_local: bool) -> dict[str, Any]:
        """Returns the server's answer to a greeting."""
        return {
            "server_id": self.server_id,
            "tables": {
                name: {"signature": queues.signature}
                for name, queues in self.tables.items()
            },
            "local": None if is_local else self.local,
        }

    def info(self) -> list[dict[str, Any]]:
        """Returns each table's description, limits and counts."""
        return [
            {**queues.table.info(), "signature": queues.signature}
            for queues in self.tables.values()
        ]

    def writers_state(self) -> list[list[Any]]:
        """Returns the records of writers for a checkpoint."""
        return [[id, w.index, w.confirmed] for id, w in self.writers.items()]

    def restore_writers(self, state: Sequence[Sequence[Any]]) -> None:
        """Restores the records that `writers_state` returned."""
        for writer_id, index, confirmed in state:
            self.writers[str(writer_id)] = WriterRecord(int(index), int(confirmed))
            self._next_writer = max(self._next_writer, int(index) + 1)

    def _drop_unused_stores(self) -> None:
        unused = {k: store for k, store in self.stores.items() if not store.rows_in_use}
        for schema, store in unused.items():
            self._mapped -= store.fd is not None
            self.background.add(store.dropping())
            del self.stores[schema]
        # The number doubles, so that each new store costs little time for this search.
        self._most_stores = max(_FEW_STORES, 2 * len(self.stores))

    def _give_back_memory(self) -> None:
        """Gives back the memory of steps that was not needed since the last call."""
        for store in self.stores.values():
            rows = store.spare()
            if rows:
                self.background.add(store.giving_back(rows))

    def _forget_writers(self) -> None:
        excess = len(self.writers) - _MAX_WRITERS
        if excess <= 0:
            return
        idle = (id for id, writer in self.writers.items() if writer.session is None)
        for writer_id in [id for _, id in zip(range(excess), idle, strict=False)]:
            del self.writers[writer_id]

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(_TICK, self._tick)
        self._ticks += 1
        if self._ticks % _SPARE_TICKS == 0:
            self._give_back_memory()
        before = loop.time() - _LONG_WAIT
        for queues in self.tables.values():
            if not queues.stands_still_since(before):
                continue  # The others are at work, for whom a limiter makes these wait.
            for queue in (queues.samplers, queues.inserters):
                late = [s for s in queue if s.waiting_since <= before]
                if late:
                    text = queues.waiting_text(queue)
                    for session in late:
                        session.waiting_since = loop.time()
                        session.send(wire.WAITING, {"message": text})


def _same(given: Any, expected: bytes) -> bool:
    return isinstance(given, bytes) and hmac.compare_digest(given, expected)


class EventLog:
    """Logs the events of one server: connections, refusals and checkpoints.

    `tfrl replay-server --verbosity=...` chooses the events that are printed. Anyone can
    cause refusals, so their number per period is limited.
    """

    def __init__(self) -> None:
        """Creates a log without refusals."""
        self._since = -_PERIOD
        self._refusals = 0

    def connected(self, peer: str, role: object, is_local: bool) -> None:
        """Logs that a client has been admitted.

        Args:
          peer: The address of the client.
          role: "control", "writer" or "sampler".
          is_local: Whether it uses the Unix socket.
        """
        way = "the local socket" if is_local else "TCP"
        LOGGER.info("A %s has connected over %s from %s.", role, way, peer)

    def disconnected(self, peer: str, role: object) -> None:
        """Logs that a client's connection has ended."""
        LOGGER.info("A %s from %s has disconnected.", role, peer)

    def refused(self, peer: str, reason: object) -> None:
        """Logs that a client or its message is refused, unless there are too many."""
        now = time.monotonic()
        if now - self._since > _PERIOD:
            if self._refusals > _MOST_REFUSALS:
                left_out = self._refusals - _MOST_REFUSALS
                LOGGER.warning("Refused clients %d more times.", left_out)
            self._since, self._refusals = now, 0
        self._refusals += 1
        if self._refusals <= _MOST_REFUSALS:
            LOGGER.warning("Refused a client from %s: %.500s", peer, reason)

    def wrote_checkpoint(self, path: str, seconds: float) -> None:
        """Logs that a checkpoint is complete."""
        LOGGER.info("Wrote the checkpoint %s in %.1f s.", path, seconds)

    def failed_checkpoint(self, error: BaseException) -> None:
        """Logs that a checkpoint could not be written."""
        LOGGER.error("A checkpoint could not be written: %s", error)


class Newcomer(Protocol):
    """A session without a greeting."""

    def refuse(self, error: Exception) -> None:
        """Ends the session with an ERROR message."""


class Newcomers:
    """The sessions without a valid greeting, in order of arrival, which are limited.

    A client sends its greeting within milliseconds, and connects again if it is
    refused. So if there are too many sessions, the session that has waited longest is
    ended.
    """

    def __init__(self) -> None:
        """Creates an empty collection."""
        # The keys are whether a session is local. Dictionaries keep the order.
        self._waiting: dict[bool, dict[Newcomer, None]] = {True: {}, False: {}}

    def __len__(self) -> int:
        """Returns the number of sessions."""
        return sum(map(len, self._waiting.values()))

    def add(self, session: Newcomer, is_local: bool) -> None:
        """Adds a session, and ends the oldest one if there are too many."""
        waiting = self._waiting[is_local]
        waiting[session] = None
        if len(waiting) > (_MOST_LOCAL if is_local else _MOST_REMOTE):
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.refuse(
                errors.ReplayUnavailable(
                    "Too many clients have connected without sending a greeting."
                )
            )

    def discard(self, session: Newcomer) -> None:
        """Removes a session, which has sent its greeting or has ended."""
        for waiting in self._waiting.values():
            waiting.pop(session, None)


class BackgroundWork:
    """A queue of work for which no client waits, done between clients' requests.

    Each piece of work is an iterator that does one slice of it per step.
    """

    def __init__(self) -> None:
        """Creates an empty queue."""
        self._queue: collections.deque[Iterator[None]] = collections.deque()

    def __len__(self) -> int:
        """Returns the number of unfinished pieces of work."""
        return len(self._queue)

    def add(self, work: Iterator[None]) -> None:
        """Adds work. Does its first slice immediately if no other work is waiting.

        So a small piece of work, of one slice, is usually finished on return. Without a
        running loop, all work is finished on return.
        """
        if self._queue:
            self._queue.append(work)
            return
        for _ in work:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_soon(self._run)
                self._queue.append(work)
                return

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _TURN
        while self._queue:
            try:
                for _ in self._queue[0]:
                    break
                else:
                    self._queue.popleft()
            except Exception:
                # A failure must not keep other work from being done.
                traceback.print_exc()
                self._queue.popleft()
            if loop.time() > end:
                break
        if self._queue:
            loop.call_soon(self._run)
