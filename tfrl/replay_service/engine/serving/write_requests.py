"""What a session does for those who write."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors, signatures
from tfrl.replay_service.engine.serving.requests import (
    AGAIN,
    DONE,
    Caller,
    Outcome,
    Request,
    check_array,
    check_count,
    priorities_error,
)
from tfrl.replay_service.engine.serving.service import SLICE, Service, TableWaitQueues
from tfrl.replay_service.engine.storage.sent_steps import SentSteps
from tfrl.replay_service.engine.storage.step_store import StepStore
from tfrl.replay_service.transport import wire
from tfrl.specs import dtype_names

_MAX_COLUMNS = 4000
_MAX_KNOWN = 1024


class WriterState:
    """What a session remembers of what it has been sent.

    Each step that was sent is held until the client says that it will not refer to it
    any more, or the session ends.

    Attributes:
      service: What the session shares with the others.
      caller: The session.
      record: What is remembered of the writer beyond it.
      sent: The number that the client knows to be confirmed.
    """

    def __init__(self, service: Service, caller: Caller, writer_id: Any):
        """Starts without steps; ends a session that the same writer still has.

        Raises:
          ProtocolError: If `writer_id` is neither a string nor None.
        """
        if writer_id is not None and (
            not isinstance(writer_id, str) or len(writer_id) > 64
        ):
            raise errors.ProtocolError(f"{writer_id!r} is no writer's id.")
        self.service = service
        self.caller = caller
        self.record = service.writer(writer_id)
        if self.record.session is not None:
            # Its connection is lost, or it would not have come again.
            self.record.session.close()
        self.record.session = caller
        self.sent = self.record.confirmed
        self._schema: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self._store: StepStore | None = None
        self._steps: dict[int, SentSteps] = {}  # By schema.
        self._targets: dict[tuple[Any, ...], tuple[TableWaitQueues, int, int]] = {}

    @property
    def confirmed(self) -> int:
        """The number of the writer's last item that has been inserted."""
        return self.record.confirmed

    def request(self, frame: wire.Frame) -> Write:
        """Keeps the steps that a message brings, and returns what it asks for.

        Raises:
          ProtocolError: If the message is not as it should be.
        """
        meta, arrays = frame.meta, frame.arrays
        if "schema" in meta:
            self._set_schema(meta["schema"])
        count = len(self._schema)
        groups = meta["groups"]
        if len(arrays) != 1 + count + 3 * len(groups):
            raise errors.ProtocolError(
                f"{len(arrays)} arrays for {count} columns and {len(groups)} groups."
            )
        keep = check_count(meta["keep"], "keep")
        problem = self._add_steps(arrays[0], arrays[1 : 1 + count])
        requests = [
            self._group(group, problem, *arrays[start : start + 3])
            for group, start in zip(
                groups, range(1 + count, len(arrays), 3), strict=True
            )
        ]
        if problem is not None and not requests:
            self.caller.send_error(problem, confirmed=self.confirmed)
        return Write(self, requests, keep)

    def forget(self, keep: int) -> None:
        """Lets go of the steps before number `keep`."""
        for steps in self._steps.values():
            steps.forget(keep)

    def close(self) -> None:
        """Lets go of all steps."""
        for steps in self._steps.values():
            steps.close()
        self._steps.clear()
        if self.record.session is self.caller:
            self.record.session = None

    def _set_schema(self, schema: Any) -> None:
        if len(schema) > _MAX_COLUMNS:
            raise errors.ProtocolError(f"{len(schema)} columns, over {_MAX_COLUMNS}.")
        self._schema = tuple(
            (
                dtype_names.dtype_name(dtype_names.dtype_from_name(str(column[0]))),
                tuple(check_count(size, "a dimension") for size in column[1]),
            )
            for column in schema
        )
        # One that is not there yet is made when there are steps for it.
        self._store = self.service.stores.get(self._schema)
        self._targets.clear()

    def _add_steps(
        self, numbers: np.ndarray, arrays: Sequence[np.ndarray]
    ) -> Exception | None:
        """Stores steps; returns what came in the way, if anything did."""
        check_array(numbers, np.int64, (None,))
        for array, (dtype, shape) in zip(arrays, self._schema, strict=True):
            check_array(
                array, dtype_names.dtype_from_name(dtype), (len(numbers), *shape)
            )
        if not len(numbers):
            return None
        if numbers[0] < 0 or not (numbers[1:] > numbers[:-1]).all():
            raise errors.ProtocolError("The numbers of steps do not increase.")
        if not arrays:
            raise errors.ProtocolError("Steps came before a schema.")
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
            # New, and maybe in the place of one that was dropped with its layouts.
            self._store = store
            self._targets.clear()
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
            raise errors.ProtocolError("The numbers of items do not increase from 1.")
        episode = check_count(group["episode"], "episode") & 0xFFFFFFFF
        episode |= self.record.index << 32
        result = _Group(self.record, priorities, numbers, episode)
        result.problem = problem
        if problem is None:
            try:
                result.queues, result.layout, width = self._target(group)
                result.slots = self._resolve(width, refs)
            except ValueError as error:
                result.problem = error
            else:
                name = result.queues.table.name
                result.problem = priorities_error(name, priorities)
        return result

    def _target(self, group: dict[str, Any]) -> tuple[TableWaitQueues, int, int]:
        """Returns the table that items go to, their layout, and how many steps it has.

        Raises:
          ValueError: If there is no such table, or its signature is another.
        """
        table, lengths = group["table"], tuple(group["lengths"])
        columns = tuple(map(tuple, group["columns"]))
        found = self._targets.get((table, columns, lengths))
        if found is not None:
            return found
        service = self.service
        if not isinstance(table, str) or table not in service.tables:
            raise ValueError(
                f"Unable to create item in table '{table}' since the table could not "
                "be found."
            )
        if self._store is None:
            raise ValueError("An item refers to steps, and none of its kind were sent.")
        queues = service.tables[table]
        try:
            layout = service.layouts.index(self._store, columns, lengths)
        except ValueError as error:
            raise errors.ProtocolError(str(error)) from error
        _check_signature(service, queues, layout)
        if len(self._targets) >= _MAX_KNOWN:
            self._targets.clear()
        found = self._targets[table, columns, lengths] = queues, layout, sum(lengths)
        return found

    def _resolve(self, width: int, refs: np.ndarray) -> np.ndarray:
        """Returns the slots of the steps that items refer to, int32 `[n, W]`.

        Raises:
          ValueError: If one of them is not there.
        """
        if refs.shape[1] != width:
            raise errors.ProtocolError(
                f"Items refer to {refs.shape[1]} steps, and consist of {width}."
            )
        assert self._store is not None, "A layout has a store."
        steps = self._steps.get(self._store.schema_id)
        if steps is None:
            raise ValueError(f"An item refers to step {refs.flat[0]}, never sent.")
        return steps.slots(refs)


class Write(Request):
    """A request to insert items."""

    def __init__(self, state: WriterState, groups: list[_Group], keep: int):
        """Takes it up; the steps are there already."""
        self._state = state
        self._groups = collections.deque(groups)
        self._keep = keep

    def advance(self, woken: bool) -> Outcome | collections.deque[Caller]:
        """Inserts what the limiters let through now, up to a limit.

        Args:
          woken: Whether it is this request's turn among those that wait.
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
                except ValueError as error:  # Such as a priority to a power too high.
                    group.problem = error
                woken = woken and not queues.inserters
                continue
            self._groups.popleft()
        self._state.forget(self._keep)
        self._confirm(always=True)
        return DONE

    def _wait(self, queues: TableWaitQueues) -> collections.deque[Caller]:
        self._confirm()
        return queues.inserters

    def _confirm(self, always: bool = False) -> None:
        state = self._state
        if always or state.confirmed != state.sent:
            state.sent = state.confirmed
            state.caller.send(wire.CONFIRMED, {"confirmed": state.sent})

    def _refuse(self, group: _Group) -> None:
        """Drops a group; its items are as good as inserted, not to be sent again."""
        assert group.problem is not None
        group.drop()
        self._state.sent = self._state.confirmed
        self._state.caller.send_error(group.problem, confirmed=self._state.sent)


class _Group:
    """Items of one layout on their way to one table."""

    def __init__(
        self, record: Any, priorities: np.ndarray, numbers: np.ndarray, episode: int
    ):
        self.problem: Exception | None = None
        self.queues: TableWaitQueues | None = None
        self.layout = -1
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
        """Passes over what was inserted in an earlier session; returns what is left."""
        if self.left and self._numbers[self._next] <= self._record.confirmed:
            self._next = int(
                self._numbers.searchsorted(self._record.confirmed, "right")
            )
        return self.left

    def insert(self, count: int, service: Service) -> None:
        """Inserts the next `count` items, which the table has room for."""
        assert self.queues is not None
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

    def drop(self) -> None:
        """Counts all items as dealt with."""
        self._record.confirmed = max(self._record.confirmed, int(self._numbers[-1]))


_NO_SLOTS = np.empty(0, np.int32)


def _check_signature(service: Service, queues: TableWaitQueues, layout: int) -> None:
    """Checks a layout against a table's signature.

    Raises:
      ValueError: If the signature is another.
    """
    if queues.leaves is None:
        return
    definition = service.layouts.definition(layout)
    lengths = definition["lengths"]
    items = []
    steps = []
    for column in definition["columns"]:
        row = tuple(column["shape"])
        time = () if column["squeezed"] else (lengths[column["range"]],)
        items.append((column["dtype"], (*time, *row)))
        steps.append((column["dtype"], row))
    name = queues.table.name
    problem = signatures.mismatch(name, queues.leaves, items)
    # What `Client.insert` and `Client.writer` make fits signatures of single steps.
    if problem and signatures.mismatch(name, queues.leaves, steps):
        raise ValueError(problem)
