"""Converts the items of a table to arrays for a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import insertion_order
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_DTYPES = {
    "keys": np.uint64,
    "priorities": np.float64,
    "times_sampled": np.int32,
    "payloads": np.int32,
    "episodes": np.int64,
    "stamps": np.int64,
}


class TableCut:
    """The state of a table at one time, copied while the table changes.

    Any thread may call `copy`. When it has returned, the thread that owns the table
    calls `close`, and any thread may call `state`.
    """

    def __init__(
        self,
        columns: columns_lib.Columns,
        selectors: Sequence[selectors_lib.Selector],
        meta: dict[str, Any],
    ) -> None:
        """Makes the cut.

        Args:
          columns: The items of the table.
          selectors: The selectors of the table.
          meta: Further entries of the state's dictionary.
        """
        self._columns = columns
        # The keys of the items, oldest first, and other keys between them. None to sort
        # the items by their keys.
        self._order: Sequence[np.ndarray] | None = None
        for selector in selectors:
            if isinstance(selector, insertion_order.InsertionOrder):
                self._order = selector.order()
        self._meta = {
            "capacity": columns.capacity,
            "used": columns.used,
            "insert_number": columns.insert_number,
            "stamp": columns.stamp,
            **meta,
        }
        self._cut = columns.begin_cut(
            {
                f"{selector.role}.{name}": array
                for selector in selectors
                for name, array in selector.state().items()
            }
        )
        self._copies: dict[str, np.ndarray] = {}

    def copy(self) -> None:
        """Copies the state."""
        self._copies = self._cut.copy()

    def close(self) -> None:
        """Ends the cut; it no longer records changes of the table."""
        self._cut.close()
        if self._columns.cut is self._cut:
            self._columns.cut = None

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Returns the table's state; see `EngineTable.state`."""
        arrays = self._copies
        self._cut.correct(arrays)
        keys = arrays["keys"]
        if self._order is None:
            rows = columns_lib.by_age(keys, self._meta["insert_number"])
        else:
            order = np.concatenate([keys[:0], *self._order])
            # Later items may be in rows that the cut does not have.
            order = order[columns_lib.row_of(order) < keys.size]
            order = order[keys.take(columns_lib.row_of(order)) == order]
            rows = columns_lib.row_of(order)
        arrays.update({name: arrays[name][rows] for name in columns_lib.NAMES})
        arrays["payloads"] = arrays["payloads"].view(np.int32).reshape(-1, 2)
        return self._meta, arrays


def to_columns(
    columns: columns_lib.Columns,
    max_size: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Writes saved items into empty columns; returns their rows in the saved order.

    Args:
      columns: The columns to fill.
      max_size: The maximum size of the table.
      meta: The dictionary of `TableCut.state`.
      arrays: The arrays of `TableCut.state`.

    Raises:
      ValueError: If the arguments are not the items of a table of at most this size.
    """
    items = {name: np.asarray(arrays[name], dtype) for name, dtype in _DTYPES.items()}
    rows = columns_lib.row_of(items["keys"])
    free = np.asarray(arrays["free_rows"], np.int32)
    capacity, used = int(meta["capacity"]), int(meta["used"])
    _check_columns(items, np.append(rows, free), used)
    _check_sizes(rows.size, used, capacity, max_size)
    columns.reserve(capacity)
    payloads = np.ascontiguousarray(items.pop("payloads")).view(np.int64).reshape(-1)
    columns.payloads[rows] = payloads
    for name, values in items.items():
        getattr(columns, name)[rows] = values
    columns.keys[free] = columns_lib.NO_KEY
    columns.stamps[free] = -1
    columns.size, columns.used = rows.size, used
    columns.free_rows = free
    columns.insert_number, columns.stamp = (
        int(meta["insert_number"]),
        int(meta["stamp"]),
    )
    return rows


def _check_columns(
    items: Mapping[str, np.ndarray], rows: np.ndarray, used: int
) -> None:
    """Checks that all columns have the same length, and that rows are distinct."""
    lengths = {name: len(values) for name, values in items.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"checkpoint: got columns of the lengths {lengths} for a table, expected "
            "equal lengths; use another checkpoint."
        )
    if not np.array_equal(np.sort(rows), np.arange(used)):
        raise ValueError(
            f"checkpoint: got {rows.size} rows in a table's keys and free rows, "
            f"expected each of the first {used} rows once; use another checkpoint."
        )


def _check_sizes(size: int, used: int, capacity: int, max_size: int) -> None:
    """Checks that the table is large enough for the items."""
    if size > max_size or not used <= capacity <= 2 * max_size + 1024:
        raise ValueError(
            f"checkpoint: got a table of {size} items in {capacity} rows, expected at "
            f"most {max_size} items, the table's max_size; make the table as large as "
            "the saved table."
        )
