"""Stores the steps of writers, and finds the steps of their items."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service import errors, signatures
from tfrl.replay_service.engine.serving.insert_requests import (
    Confirmations,
    ItemGroup,
    Write,
)
from tfrl.replay_service.engine.serving.requests import (
    Caller,
    check_array,
    check_count,
    priorities_error,
    shown,
)
from tfrl.replay_service.engine.serving.service import Service, TableWaitQueues
from tfrl.replay_service.engine.storage.layouts import Layout
from tfrl.replay_service.engine.storage.step_store import SentSteps, StepStore
from tfrl.replay_service.transport import wire
from tfrl.specs import dtype_names

_LONGEST_NAME = 32  # Of a dtype.

# The dtype's name and the shape of each column.
Schema = tuple[tuple[str, tuple[int, ...]], ...]

_MAX_KNOWN = 1 << 14  # Columns and ranges of the targets that a session remembers.
_SLICE_OF_REFS = 1 << 15


class WriterState:
    """The writing state of a session: the steps to which its items can refer.

    Each step is kept until the client releases it or the session ends.

    Attributes:
      record: The record of the writer, which outlives the session.
    """

    def __init__(self, service: Service, caller: Caller, writer_id: Any):
        """Creates the state without steps, and ends the writer's earlier session.

        Args:
          service: The state that all sessions share.
          caller: The session.
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
        self._service = service
        self._caller = caller
        self.record = service.writer(writer_id)
        if self.record.session is not None:
            # The writer connects again, so its earlier connection is lost.
            self.record.session.close()
        self.record.session = caller
        self._confirmations = Confirmations(caller, self.record)
        self._schema: Schema = ()
        self._store: StepStore | None = None
        self._steps: dict[int, SentSteps] = {}  # Sent steps by schema.
        self._targets: dict[tuple[Any, ...], tuple[TableWaitQueues, Layout]] = {}
        self._problem: Exception | None = None  # An error of earlier steps.
        self._known = 0  # The number of columns and ranges in the targets' keys.

    def request(self, frame: wire.Frame) -> Write:
        """Returns the request to store the steps in a WRITE message, and its items.

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
        steps = arrays[0], arrays[1 : 1 + count]
        self._check_steps(*steps)
        requests = [
            self._group(group, *arrays[start : start + 3])
            for group, start in zip(
                groups, range(1 + count, len(arrays), 3), strict=True
            )
        ]
        return Write(
            self._service,
            self._confirmations,
            self._storing(*steps, requests),
            requests,
            functools.partial(self._forgetting, keep),
        )

    def _forgetting(self, keep: int) -> Iterator[None]:
        """Releases the steps numbered below `keep`, in slices."""
        for steps in self._steps.values():
            yield from steps.forgetting(keep)

    def close(self) -> None:
        """Releases all steps."""
        for steps in self._steps.values():
            self._service.background.add(steps.close())
        self._steps.clear()
        if self.record.session is self._caller:
            self.record.session = None

    def _set_schema(self, schema: Any) -> None:
        self._schema = read_schema(schema)
        # A new store is created when its first steps arrive.
        self._store = self._service.stores.get(self._schema)
        self._forget_targets()

    def _check_steps(self, numbers: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        """Checks the steps of a message.

        Raises:
          ProtocolError: If they do not match the schema, or are not in order.
        """
        check_array(numbers, np.int64, (None,))
        for array, (dtype, shape) in zip(arrays, self._schema, strict=True):
            check_array(
                array, dtype_names.dtype_from_name(dtype), (len(numbers), *shape)
            )
        if not len(numbers):
            return
        if numbers[0] < 0 or not (numbers[1:] > numbers[:-1]).all():
            raise errors.ProtocolError("The numbers of the steps do not increase.")
        if not arrays:
            raise errors.ProtocolError("Got steps before a schema.")

    def _storing(
        self,
        numbers: np.ndarray,
        arrays: Sequence[np.ndarray],
        groups: Sequence[ItemGroup],
    ) -> Generator[None, None, None]:
        """Stores steps in slices, and then finds the steps of items.

        Other sessions have their turns between the slices of a large message.
        """
        problem = self._problem
        if problem is None and len(numbers):
            try:
                store = self._use_store()
                slots = yield from store.allocating(len(numbers))
            except errors.ResourceExhaustedError as error:
                problem = error
            else:
                yield from self._add_steps(store, numbers, slots, arrays)
        # The steps of items can precede them in several messages.
        self._problem = None if groups else problem
        for group in groups:
            yield from self._bind(group, problem)

    def _add_steps(
        self,
        store: StepStore,
        numbers: np.ndarray,
        slots: np.ndarray,
        arrays: Sequence[np.ndarray],
    ) -> Iterator[None]:
        """Writes steps to new slots in slices; releases the slots if it is stopped."""
        try:
            yield from store.writing(slots, arrays)
        except BaseException:
            store.release(slots)
            raise
        steps = self._steps.get(store.schema_id)
        if steps is None:
            steps = self._steps[store.schema_id] = SentSteps(store)
        steps.add(numbers, slots)

    def _use_store(self) -> StepStore:
        store = self._service.store(self._schema)
        if store is not self._store:
            # The store is new. An earlier one may have been dropped with its layouts.
            self._store = store
            self._forget_targets()
            self._steps = {id: steps for id, steps in self._steps.items() if len(steps)}
        return store

    def _group(
        self,
        group: dict[str, Any],
        refs: np.ndarray,
        priorities: np.ndarray,
        numbers: np.ndarray,
    ) -> ItemGroup:
        """Returns the items in a message, whose steps are not known yet.

        Raises:
          ProtocolError: If they are malformed.
        """
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
        target = (
            group["table"],
            tuple(map(tuple, group["columns"])),
            tuple(group["lengths"]),
        )
        hash(target)  # This raises a TypeError if one of them is not a plain value.
        return ItemGroup(self.record, target, refs, priorities, numbers, episode)

    def _bind(self, group: ItemGroup, problem: Exception | None) -> Iterator[None]:
        """Finds the table, the layout and the steps of items, or notes a problem."""
        group.problem = problem
        if problem is None:
            try:
                group.queues, group.layout = self._target(*group.target)
                width = group.layout.width
                group.bind((yield from self._resolve(width, group.refs)))
            except ValueError as error:
                group.problem = error
            else:
                name = group.queues.table.name
                group.problem = priorities_error(name, group.priorities)

    def _target(
        self,
        table: Any,
        columns: tuple[tuple[Any, ...], ...],
        lengths: tuple[Any, ...],
    ) -> tuple[TableWaitQueues, Layout]:
        """Returns a group's table and its layout.

        Raises:
          ValueError: If there is no such table, or its signature does not match.
        """
        found = self._targets.get((table, columns, lengths))
        if found is not None:
            return found
        service = self._service
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

    def _resolve(
        self, width: int, refs: np.ndarray
    ) -> Generator[None, None, np.ndarray]:
        """Returns the slots of the steps that items refer to, int32 `[n, W]`.

        A large number of steps is found in slices.

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
        if refs.size <= _SLICE_OF_REFS:
            return steps.slots(refs)
        found = []
        flat = refs.reshape(-1)
        for start in range(0, len(flat), _SLICE_OF_REFS):
            found.append(steps.slots(flat[start : start + _SLICE_OF_REFS]))
            yield
        return np.concatenate(found).reshape(refs.shape)


def read_schema(schema: Any) -> Schema:
    """Returns the schema in a message after checking it.

    Raises:
      ProtocolError: If there are too many columns, or one has no valid dtype or shape.
    """
    if len(schema) > wire.MAX_COLUMNS:
        raise errors.ProtocolError(
            f"Got {len(schema)} columns, expected at most {wire.MAX_COLUMNS}."
        )
    return tuple(_column(name, shape) for name, shape, *_ in schema)


def check_signature(queues: TableWaitQueues, layout: Layout) -> None:
    """Checks a layout against a table's signature.

    Raises:
      ValueError: If the layout does not match the signature.
    """
    if queues.leaves is None:
        return
    items = []
    steps = []
    for column, range_, squeezed in layout.columns:
        dtype, row = layout.store.columns[column]
        time = () if squeezed else (layout.lengths[range_],)
        items.append((dtype, (*time, *row)))
        steps.append((dtype, row))
    name = queues.table.name
    problem = signatures.mismatch(name, queues.leaves, items)
    # Items of `Client.insert` and `Client.writer` match signatures of single steps.
    if problem and signatures.mismatch(name, queues.leaves, steps):
        raise ValueError(problem)


def _column(name: Any, shape: Any) -> tuple[str, tuple[int, ...]]:
    """Returns a column of a schema after checking it.

    Raises:
      ProtocolError: If its dtype or its shape is invalid.
    """
    if not isinstance(name, str) or not isinstance(shape, list):
        raise errors.ProtocolError("Got a column without a dtype or a shape.")
    if len(name) > _LONGEST_NAME or len(shape) > wire.MAX_STEP_RANK:
        raise errors.ProtocolError(
            f"Got a column of dtype {reprlib.repr(name)} and rank {len(shape)}, "
            f"expected the name of a dtype and a rank of at most {wire.MAX_STEP_RANK}."
        )
    dtype = dtype_names.dtype_name(dtype_names.dtype_from_name(name))
    return dtype, tuple(check_count(size, "a dimension") for size in shape)
