"""Handles requests to insert items."""

from __future__ import annotations

import collections
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Outcome,
    Request,
    check_array,
    check_count,
    priorities_error,
    shown,
)
from tfrl.replay_service.engine.serving.service import SLICE, Service, TableWaitQueues
from tfrl.replay_service.engine.serving.write_checks import (
    Schema,
    check_signature,
    read_schema,
)
from tfrl.replay_service.engine.storage.layouts import Layout
from tfrl.replay_service.engine.storage.sent_steps import SentSteps
from tfrl.replay_service.engine.storage.step_store import StepStore
from tfrl.replay_service.transport import wire
from tfrl.specs import dtype_names

_MAX_KNOWN = 1 << 14  # Columns and ranges of the targets that a session remembers.


class WriterState:
    """The writing state of a session: the steps to which its items can refer.

    Each step is kept until the client releases it or the session ends.

    Attributes:
      service: The state that all sessions share.
      caller: The session.
      record: The record of the writer, which outlives the session.
      sent: The last number that was confirmed to the client.
    """

    def __init__(self, service: Service, caller: Caller, writer_id: Any):
        """Creates the state without steps, and ends the writer's earlier session.

        Args:
          service: See the attribute.
          caller: See the attribute.
          writer_id: The id of the writer; None for a writer without a record.

        Raises:
          ProtocolError: If `writer_id` is neither None nor a string of 64 characters
            or fewer.
        """
        if writer_id is not None and (
            not isinstance(writer_id, str) or len(writer_id) > 64
        ):
            raise errors.ProtocolError(
                f"writer_id: got {reprlib.repr(writer_id)}, expected a string of 64 "
                "characters or fewer."
            )
        self.service = service
        self.caller = caller
        self.record = service.writer(writer_id)
        if self.record.session is not None:
            # The writer connects again, so its earlier connection is lost.
            self.record.session.close()
        self.record.session = caller
        self.sent = self.record.confirmed
        self._schema: Schema = ()
        self._store: StepStore | None = None
        self._steps: dict[int, SentSteps] = {}  # By schema.
        self._targets: dict[tuple[Any, ...], tuple[TableWaitQueues, Layout]] = {}
        self._problem: Exception | None = None  # With steps for items to come.
        self._known = 0  # The number of columns and ranges in the targets' keys.

    @property
    def confirmed(self) -> int:
        """The number of the writer's last inserted item."""
        return self.record.confirmed

    def request(self, frame: wire.Frame) -> Write:
        """Stores the steps in a WRITE message; returns the request for its items.

        Raises:
          ProtocolError: If the message is malformed.
        """
        meta, arrays = frame.meta, frame.arrays
        if "schema" in meta:
            self._set_schema(meta["schema"])
        count = len(self._schema)
        groups = meta["groups"]
        if len(arrays) != 1 + count + 3 * len(groups):
            raise errors.ProtocolError(
                f"Got {len(arrays)} arrays for {count} columns, {len(groups)} groups."
            )
        keep = check_count(meta["keep"], "keep")
        problem = self._problem or self._add_steps(arrays[0], arrays[1 : 1 + count])
        # The steps of items can precede them in several messages.
        self._problem = None if groups else problem
        requests = [
            self._group(group, problem, *arrays[start : start + 3])
            for group, start in zip(
                groups, range(1 + count, len(arrays), 3), strict=True
            )
        ]
        return Write(self, requests, keep)

    def forget(self, keep: int) -> None:
        """Releases the steps numbered below `keep`."""
        for steps in self._steps.values():
            steps.forget(keep)

    def close(self) -> None:
        """Releases all steps."""
        for steps in self._steps.values():
            steps.close()
        self._steps.clear()
        if self.record.session is self.caller:
            self.record.session = None

    def _set_schema(self, schema: Any) -> None:
        self._schema = read_schema(schema)
        # A new store is created when its first steps arrive.
        self._store = self.service.stores.get(self._schema)
        self._forget_targets()

    def _add_steps(
        self, numbers: np.ndarray, arrays: Sequence[np.ndarray]
    ) -> Exception | None:
        """Stores steps; returns an error if memory is lacking, else None."""
        check_array(numbers, np.int64, (None,))
        for array, (dtype, shape) in zip(arrays, self._schema, strict=True):
            check_array(
                array, dtype_names.dtype_from_name(dtype), (len(numbers), *shape)
            )
        if not len(numbers):
            return None
        if numbers[0] < 0 or not (numbers[1:] > numbers[:-1]).all():
            raise errors.ProtocolError("The numbers of the steps do not increase.")
        if not arrays:
            raise errors.ProtocolError("Got steps before a schema.")
        try:
            store = self._use_store()
            slots = store.allocate(len(numbers))
        except errors.ResourceExhaustedError as error:
            return error
        store.write(slots, arrays)
        steps = self._steps.get(store.schema_id)
        if steps is None:
            steps = self._steps[store.schema_id] = SentSteps(store)
        steps.add(numbers, slots)
        return None

    def _use_store(self) -> StepStore:
        store = self.service.store(self._schema)
        if store is not self._store:
            # The store is new. An earlier one may have been dropped with its layouts.
            self._store = store
            self._forget_targets()
            self._steps = {id: steps for id, steps in self._steps.items() if len(steps)}
        return store

    def _group(
        self,
        group: dict[str, Any],
        problem: Exception | None,
        refs: np.ndarray,
        priorities: np.ndarray,
        numbers: np.ndarray,
    ) -> _Group:
        count = len(numbers)
        check_array(numbers, np.int64, (None,))
        check_array(priorities, np.float64, (count,))
        check_array(refs, np.int64, (count, None))
        if not count or numbers[0] < 1 or not (numbers[1:] > numbers[:-1]).all():
            raise errors.ProtocolError(
                "The numbers of the items do not increase from 1."
            )
        episode = check_count(group["episode"], "episode") & 0xFFFFFFFF
        episode |= self.record.index << 32
        result = _Group(self.record, priorities, numbers, episode)
        result.problem = problem
        if problem is None:
            try:
                result.queues, result.layout = self._target(group)
                result.slots = self._resolve(result.layout.width, refs)
            except ValueError as error:
                result.problem = error
            else:
                name = result.queues.table.name
                result.problem = priorities_error(name, priorities)
        return result

    def _target(self, group: dict[str, Any]) -> tuple[TableWaitQueues, Layout]:
        """Returns a group's table and its layout.

        Raises:
          ValueError: If there is no such table, or its signature does not match.
        """
        table, lengths = group["table"], tuple(group["lengths"])
        columns = tuple(map(tuple, group["columns"]))
        found = self._targets.get((table, columns, lengths))
        if found is not None:
            return found
        service = self.service
        if not isinstance(table, str) or table not in service.tables:
            raise ValueError(
                f"Unable to create item in table '{shown(table)}' since the table "
                "could not be found."
            )
        if self._store is None:
            raise ValueError("An item refers to steps that were never sent.")
        queues = service.tables[table]
        try:
            layout = service.layouts.find(self._store, columns, lengths)
        except ValueError as error:
            raise errors.ProtocolError(str(error)) from error
        check_signature(queues, layout)
        self._known += len(columns) + len(lengths)
        if self._known > _MAX_KNOWN:
            self._forget_targets()
            self._known = len(columns) + len(lengths)
        found = self._targets[table, columns, lengths] = queues, layout
        return found

    def _forget_targets(self) -> None:
        self._targets.clear()
        self._known = 0

    def _resolve(self, width: int, refs: np.ndarray) -> np.ndarray:
        """Returns the slots of the steps that items refer to, int32 `[n, W]`.

        Raises:
          ValueError: If one of the steps is not available.
        """
        if refs.shape[1] != width:
            raise errors.ProtocolError(
                f"Got items that refer to {refs.shape[1]} steps, expected {width}."
            )
        assert self._store is not None, "A layout has a store."
        steps = self._steps.get(self._store.schema_id)
        if steps is None:
            raise ValueError(
                f"An item refers to step {refs.flat[0]}, which was never sent."
            )
        return steps.slots(refs)


class Write(Request):
    """A request to insert items."""

    def __init__(self, state: WriterState, groups: list[_Group], keep: int):
        """Creates a request to insert items whose steps are already stored.

        Args:
          state: The session's state.
          groups: The items to insert, in order.
          keep: The steps numbered below `keep` are released afterwards.
        """
        self._state = state
        self._groups = collections.deque(groups)
        self._keep = keep
        self._has_waited = False

    def advance(self, woken: bool) -> Outcome | collections.deque[Caller]:
        """Inserts as many items as the rate limiters allow now, up to a limit.

        Args:
          woken: Whether it is this request's turn among the waiting requests.
        """
        budget = SLICE
        while self._groups:
            group = self._groups[0]
            queues = group.queues
            if group.problem is not None:
                self._refuse(group)
            elif group.skip_confirmed() and queues is not None:
                if budget <= 0:
                    return AGAIN
                if queues.inserters and not woken:
                    queues.changed()
                    return self._wait(queues)
                room = queues.table.insertable(min(group.left, budget))
                if not room:
                    return self._wait(queues)
                budget -= room
                try:
                    group.insert(room, self._state.service)
                except (ValueError, errors.ResourceExhaustedError) as error:
                    # For example, a priority to a too large power.
                    group.problem = error
                woken = woken and not queues.inserters
                continue
            self._groups.popleft()
        self._state.forget(self._keep)
        self._confirm(always=True)
        return DONE

    def _wait(self, queues: TableWaitQueues) -> collections.deque[Caller]:
        self._confirm()
        if not self._has_waited:
            self._has_waited = True
            for group in self._groups:
                group.detach()
        return queues.inserters

    def _confirm(self, always: bool = False) -> None:
        state = self._state
        if always or state.confirmed != state.sent:
            state.sent = state.confirmed
            state.caller.send(wire.CONFIRMED, {"confirmed": state.sent})

    def _refuse(self, group: _Group) -> None:
        """Drops a group; confirms its items, so that they are not sent again."""
        assert group.problem is not None
        group.drop()
        self._state.sent = self._state.confirmed
        self._state.caller.send_error(group.problem, confirmed=self._state.sent)


class _Group:
    """Items of one layout that are to be inserted into one table."""

    def __init__(
        self, record: Any, priorities: np.ndarray, numbers: np.ndarray, episode: int
    ):
        self.problem: Exception | None = None
        self.queues: TableWaitQueues | None = None
        self.layout: Layout | None = None
        self.slots = _NO_SLOTS
        self._record = record
        self._priorities = priorities
        self._numbers = numbers
        self._episode = episode
        self._next = 0

    @property
    def left(self) -> int:
        return len(self._numbers) - self._next

    def skip_confirmed(self) -> int:
        """Skips items that an earlier session inserted; returns how many are left."""
        if self.left and self._numbers[self._next] <= self._record.confirmed:
            self._next = int(
                self._numbers.searchsorted(self._record.confirmed, "right")
            )
        return self.left

    def insert(self, count: int, service: Service) -> None:
        """Inserts the next `count` items, which the rate limiter allows."""
        assert self.queues is not None
        assert self.layout is not None
        part = slice(self._next, self._next + count)
        payloads = service.layouts.add(self.layout, self.slots[part])
        episodes = np.full(count, self._episode, np.int64)
        try:
            removed = self.queues.table.insert(
                self._priorities[part], payloads, episodes
            )
        except ValueError:
            service.layouts.remove(payloads)
            raise
        self._next += count
        self._record.confirmed = int(self._numbers[self._next - 1])
        service.layouts.remove(removed)
        self.queues.changed()

    def detach(self) -> None:
        """Copies the arrays, which are parts of a message that can be large."""
        self._priorities = self._priorities.copy()
        self._numbers = self._numbers.copy()

    def drop(self) -> None:
        """Drops all remaining items by confirming them."""
        self._record.confirmed = max(self._record.confirmed, int(self._numbers[-1]))


_NO_SLOTS = np.empty(0, np.int32)
