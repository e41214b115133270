"""Writes a server's whole state to checkpoints, and restores it.

A `ServerSnapshot` captures the state between two requests. This is fast, because
nothing is copied at first. Other threads then copy the tables and `write` the snapshot
to disk, while the server continues. `restore_latest` restores a server from a
checkpoint.

In a checkpoint, items refer to steps, and tables refer to items, by their positions in
the files. So nothing depends on addresses in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfrl.replay_service import checkpointers, errors
from tfrl.replay_service.engine.checkpoints import checkpoint_files
from tfrl.replay_service.engine.storage import layouts, step_store
from tfrl.system import files

_LOGGER = logging.getLogger("tfrl.replay_service")
_CHUNK = 4 << 20  # Bytes of steps that are copied together.
_SLOTS = "slots"  # The slots of all items, layout after layout.
_OPTIONS = (
    "max_size",
    "max_times_sampled",
    "sampler",
    "remover",
    "rate_limiter",
    "signature",
)


class CheckpointedService(Protocol):
    """The part of `engine.serving.service.Service` that checkpoints use."""

    tables: Mapping[str, Any]  # Each queue has its `EngineTable` as `table`.
    layouts: layouts.Layouts
    checkpointer: checkpointers.DefaultCheckpointer

    def store(
        self, schema: tuple[tuple[str, tuple[int, ...]], ...]
    ) -> step_store.StepStore:
        """Returns the store of the steps of one schema."""

    def writers_state(self) -> Sequence[Any]:
        """Returns the records of writers."""

    def restore_writers(self, state: Sequence[Any]) -> None:
        """Restores the records that `writers_state` returned."""


class LayoutItems(NamedTuple):
    """The items of one layout, in a snapshot.

    Attributes:
      definition: The definition of the layout.
      store: The store of the steps.
      slots: int32 `[n, W]`, the slots of each item.
    """

    definition: dict[str, Any]
    store: step_store.StepStore
    slots: np.ndarray


class TableState(NamedTuple):
    """The state of one table, in a snapshot.

    Attributes:
      name: The name of the table.
      options: The options of the table.
      meta: The JSON dictionary of `EngineTable.state`.
      arrays: The arrays of `EngineTable.state`, except that `payloads` are positions
        (layout, item) in the snapshot.
    """

    name: str
    options: dict[str, Any]
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


class ServerSnapshot:
    """A server's state at one time. It must be released after use.

    The constructor, `close` and `release` belong to the thread of the server's loop.
    Any thread may call `copy`, and after `close` also `state`.

    Attributes:
      writers: The server's records of its writers.
    """

    def __init__(self, service: CheckpointedService):
        """Captures the state. All items are kept until `release`."""
        self._layouts = service.layouts
        self._layouts.hold()
        self._tables = {
            name: (queues.table.cut(), dict(queues.table.options))
            for name, queues in service.tables.items()
        }
        self.writers = service.writers_state()

    def copy(self) -> None:
        """Copies the tables."""
        for cut, _ in self._tables.values():
            cut.copy()

    def close(self) -> None:
        """Ends the records of the tables' changes, when `copy` has returned."""
        for cut, _ in self._tables.values():
            cut.close()

    def release(self) -> Iterator[None]:
        """Returns an iterator that frees the items that were removed meanwhile."""
        self.close()
        return self._layouts.resume()

    def state(self) -> tuple[list[TableState], list[LayoutItems]]:
        """Returns the state of each table, and the items of each layout."""
        tables = [
            TableState(name, options, *cut.state())
            for name, (cut, options) in self._tables.items()
        ]
        payloads = [table.arrays["payloads"] for table in tables]
        joined = np.concatenate([np.empty((0, 2), np.int32), *payloads])
        positions = np.empty_like(joined)
        items: list[LayoutItems] = []
        for rows in layouts.group(joined[:, 0]):
            layout = int(joined[rows[0], 0])
            slots = self._layouts.slots(layout, joined[rows, 1])
            positions[rows, 0] = len(items)
            positions[rows, 1] = np.arange(len(rows))
            definition = self._layouts.definition(layout)
            items.append(LayoutItems(definition, self._layouts.store(layout), slots))
        ends = np.cumsum([len(of_table) for of_table in payloads])
        for table, of_table in zip(tables, np.split(positions, ends[:-1]), strict=True):
            table.arrays["payloads"] = of_table
        return tables, items


def write(taken: ServerSnapshot, path: str, before: str | None = None) -> str:
    """Writes a snapshot and deletes earlier checkpoints but one, in any thread.

    Args:
      taken: The snapshot, after `close`. It is not released.
      path: The directory that holds the checkpoints.
      before: The path of the earlier checkpoint to keep; None without one.

    Returns:
      The absolute path of the new checkpoint.

    Raises:
      ResourceExhaustedError: If the disk is full. Earlier checkpoints are kept.
      OSError: If writing fails for another reason. Earlier checkpoints are kept.
    """
    tables, items = taken.state()
    try:
        with checkpoint_files.CheckpointWriter(path) as writer:
            stores = _write_items(writer, items)
            for index, table in enumerate(tables):
                for name, array in table.arrays.items():
                    writer.add_array(_array_name(index, name), array)
            meta = _meta_of(tables, items, stores, taken.writers)
            return writer.finish(meta, before)
    except OSError as error:
        if files.is_disk_full(error):
            raise errors.ResourceExhaustedError(
                f"There is no room for a checkpoint in {path}: {error}. Free some "
                "space, or give the server another directory."
            ) from error
        raise


def restore_latest(service: CheckpointedService) -> str | None:
    """Restores the newest complete checkpoint into a server without items.

    Args:
      service: The server. Its checkpointer names the directory.

    Returns:
      The path of the checkpoint, or None if there is no checkpoint.

    Raises:
      ValueError: If there are checkpoints, but no complete checkpoint, or if the
        checkpoint does not fit the server's tables.
      ResourceExhaustedError: If there is not enough memory.
    """
    checkpointer = service.checkpointer
    found = checkpoint_files.latest(checkpointer.path)
    if found is None and checkpointer.fallback_checkpoint_path is not None:
        found = checkpoint_files.verified(checkpointer.fallback_checkpoint_path)
    if found is None:
        return None
    try:
        _restore(service, found)
    except (LookupError, TypeError, AssertionError, OSError) as error:
        raise ValueError(
            f"The checkpoint {found} is not of this version's form ({error!r}). Start "
            "the server with the version of tfrl that wrote it, or move the directory "
            "away to start with empty tables."
        ) from error
    return str(found)


def _write_items(
    writer: checkpoint_files.CheckpointWriter, items: Sequence[LayoutItems]
) -> dict[step_store.StepStore, int]:
    """Writes all steps, and the steps of each item; returns each store's step count."""
    slots: list[np.ndarray] = [np.empty(0, np.int32)] * len(items)
    stores: dict[step_store.StepStore, int] = {}
    for store in dict.fromkeys(of_layout.store for of_layout in items):
        own = [i for i, of_layout in enumerate(items) if of_layout.store is store]
        used = np.zeros(1 + max(items[i].slots.max() for i in own), bool)
        for i in own:
            used[items[i].slots] = True
        numbers = used.cumsum(dtype=np.int32) - 1
        for i in own:
            slots[i] = numbers[items[i].slots]
        _write_steps(writer, len(stores), store, np.flatnonzero(used))
        stores[store] = int(used.sum())
    flat = [np.empty(0, np.int32), *(array.reshape(-1) for array in slots)]
    writer.add_array(_SLOTS, np.concatenate(flat))
    return stores


def _write_steps(
    writer: checkpoint_files.CheckpointWriter,
    index: int,
    store: step_store.StepStore,
    slots: np.ndarray,
) -> None:
    for column, size in enumerate(store.row_bytes):
        chunks = (
            store.read_bytes(column, slots[start:stop])
            for start, stop in _chunks(len(slots), size)
        )
        writer.add_rows(_column_name(index, column), (len(slots), size), chunks)


def _meta_of(
    tables: Sequence[TableState],
    items: Sequence[LayoutItems],
    stores: Mapping[step_store.StepStore, int],
    writers: Sequence[Any],
) -> dict[str, Any]:
    indices = {store: index for index, store in enumerate(stores)}
    return {
        "stores": [
            {"columns": store.columns, "rows": rows} for store, rows in stores.items()
        ],
        "layouts": [
            {
                "store": indices[of_layout.store],
                "columns": [
                    [column["column"], column["range"], column["squeezed"]]
                    for column in of_layout.definition["columns"]
                ],
                "lengths": of_layout.definition["lengths"],
                "items": len(of_layout.slots),
            }
            for of_layout in items
        ],
        "tables": [
            {
                "name": table.name,
                "options": table.options,
                "meta": table.meta,
                "arrays": list(table.arrays),
            }
            for table in tables
        ],
        "writers": writers,
    }


def _restore(service: CheckpointedService, directory: Path) -> None:
    meta = checkpoint_files.read_meta(directory)
    for saved in meta["tables"]:
        _check_table(service, saved)
    steps = [
        _restore_steps(service, directory, index, saved)
        for index, saved in enumerate(meta["stores"])
    ]
    payloads, starts = _restore_items(service, directory, meta["layouts"], steps)
    for index, saved in enumerate(meta["tables"]):
        arrays = {
            name: np.array(
                checkpoint_files.read_array(directory, _array_name(index, name))
            )
            for name in saved["arrays"]
        }
        positions = arrays["payloads"]
        arrays["payloads"] = payloads[starts[positions[:, 0]] + positions[:, 1]]
        service.tables[saved["name"]].table.restore(saved["meta"], arrays)
    for store, slots in steps:
        store.release(slots)
    service.restore_writers(meta["writers"])


def _check_table(service: CheckpointedService, saved: Mapping[str, Any]) -> None:
    name = saved["name"]
    if name not in service.tables:
        raise ValueError(
            f"Trying to load table '{name}' but table was not found in provided list "
            f"of tables. Available tables: {list(service.tables)}. Add it to the "
            "server's tables, or start the server with another checkpointer."
        )
    now, before = service.tables[name].table.options, saved["options"]
    for option in _OPTIONS:
        if now.get(option) != before.get(option):
            _LOGGER.warning(
                "Table %r had %s=%s in the checkpoint. It has %s=%s now.",
                name,
                option,
                before.get(option),
                option,
                now.get(option),
            )


def _restore_steps(
    service: CheckpointedService, directory: Path, index: int, saved: Mapping[str, Any]
) -> tuple[step_store.StepStore, np.ndarray]:
    """Restores the steps of one store; returns the store and their slots."""
    schema = tuple((name, tuple(shape)) for name, shape in saved["columns"])
    store = service.store(schema)
    slots = store.allocate(saved["rows"])
    for column, size in enumerate(store.row_bytes):
        data = checkpoint_files.read_array(directory, _column_name(index, column))
        assert data.shape == (len(slots), size), "A column misses steps."
        for start, stop in _chunks(len(slots), size):
            store.write_bytes(column, slots[start:stop], data[start:stop])
    return store, slots


def _restore_items(
    service: CheckpointedService,
    directory: Path,
    saved: Sequence[Mapping[str, Any]],
    steps: Sequence[tuple[step_store.StepStore, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the payloads of all items, and the start of each layout's payloads."""
    numbers = checkpoint_files.read_array(directory, _SLOTS)
    payloads = [np.empty((0, 2), np.int32)]
    begin = 0
    for layout in saved:
        store, slots = steps[layout["store"]]
        found = service.layouts.find(store, layout["columns"], layout["lengths"])
        shape = layout["items"], sum(layout["lengths"])
        end = begin + shape[0] * shape[1]
        items = slots[numbers[begin:end]].reshape(shape)
        payloads.append(service.layouts.add(found, items))
        begin = end
    starts = np.cumsum([len(of_layout) for of_layout in payloads])
    return np.concatenate(payloads), starts


def _chunks(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields the bounds of the chunks of `rows` rows of `size` bytes."""
    step = max(1, _CHUNK // size) if size else rows
    for start in range(0, rows, max(step, 1)):
        yield start, min(start + step, rows)


def _array_name(table: int, name: str) -> str:
    return f"table-{table}-{name}"


def _column_name(store: int, column: int) -> str:
    return f"steps-{store}-{column}"
