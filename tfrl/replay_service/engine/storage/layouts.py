"""Layouts, which define the columns of items and hold the slots of each item.

A layout defines the columns of an item, and from which of the item's ranges of steps
each column takes its rows. The items of a layout are the rows of one matrix of slots,
so a batch of items is gathered in one operation. A table stores an item as a pair
(number of the layout, row in the layout's matrix), its payload.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.engine.storage import memory, step_store
from tfrl.replay_service.engine.storage.layout import SLICE, Layout, check_sources

_CHECKED_BYTES = 16 << 20  # Bytes allocated between two checks of the available memory.


class Layouts:
    """The layouts of a server's items, with the slots of the items.

    A layout has a number while it has items, and is removed with its last item. Numbers
    are used again, so payloads stay small.
    """

    def __init__(self) -> None:
        """Creates a collection without layouts."""
        self._layouts: list[Layout | None] = []  # By number; None if it is free.
        self._free: list[int] = []
        self._by_key: dict[tuple[Any, ...], Layout] = {}
        self._held: list[np.ndarray] | None = None  # Payloads to remove after `hold`.
        self._ids = itertools.count()
        self._unchecked = 0  # Bytes used since memory was last checked.

    def __len__(self) -> int:
        """Returns the number of layouts that have items."""
        return len(self._by_key)

    @property
    def nbytes(self) -> int:
        """The memory used by the slots of all items, in bytes."""
        return sum(layout.nbytes for layout in self._by_key.values())

    def find(
        self,
        store: step_store.StepStore,
        columns: Iterable[Sequence[Any]],
        lengths: Sequence[int],
    ) -> Layout:
        """Returns a layout for `add`: an existing layout with items, or a new one.

        Args:
          store: The store of the steps.
          columns: `(column of the steps, range, squeezed)` for each column of an item.
          lengths: The number of steps of each range.

        Raises:
          ValueError: If the columns do not fit the store or the ranges.
        """
        try:
            sources = tuple(map(tuple, columns))
            key = (store.schema_id, sources, tuple(lengths))
            found = self._by_key.get(key)
        except TypeError:
            raise ValueError(
                f"Got a layout of columns {reprlib.repr(columns)} and lengths "
                f"{reprlib.repr(lengths)}, expected lists of (column, range, squeezed) "
                "and of lengths."
            ) from None
        if found is not None:
            return found
        checked = check_sources(store, sources, key[2])
        return Layout(next(self._ids), store, checked, key[2])

    def add(self, layout: Layout, slots: np.ndarray) -> np.ndarray:
        """Adds items, each of which keeps a reference to its slots.

        Args:
          layout: A layout that `find` returned.
          slots: int32 `[n, W]`, the steps of each item, range after range.

        Returns:
          The payloads of the items, int32 `[n, 2]`.

        Raises:
          ResourceExhaustedError: If there is not enough memory. Nothing is added.
        """
        if layout.number < 0:
            # Another writer may have added items of an equal layout meanwhile.
            layout = self._by_key.get(layout.key, layout)
        growth = layout.growth(len(slots))
        if growth:
            self._check_memory(growth)
        if layout.number < 0:
            self._register(layout)
        payloads = np.empty((len(slots), 2), np.int32)
        payloads[:, 0] = layout.number
        payloads[:, 1] = layout.add(slots)
        return payloads

    def get(self, number: int) -> Layout:
        """Returns the layout of this number, which has items."""
        layout = self._layouts[number]
        assert layout is not None, "The layout has no items."
        return layout

    def slots(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Returns the slots, int32 `[n, W]`, of a layout's items in `rows` `[n]`."""
        return self.get(number).slots(rows)

    def store(self, number: int) -> step_store.StepStore:
        """Returns the store of the steps of a layout's items."""
        return self.get(number).store

    def definition(self, number: int) -> dict[str, Any]:
        """Returns the description of a layout that readers need, as a JSON object."""
        return self.get(number).definition()

    def hold(self) -> None:
        """Keeps all items until `resume`, although `remove` is called for them."""
        assert self._held is None, "The items are held already."
        self._held = []

    def resume(self) -> Iterator[None]:
        """Ends `hold`; returns an iterator that removes items, like `removing`."""
        assert self._held is not None, "The items are not held."
        held, self._held = self._held, None
        return itertools.chain.from_iterable(map(self.removing, held))

    def remove(self, payloads: np.ndarray) -> None:
        """Removes the items with these payloads, int32 `[n, 2]`, of any layouts."""
        for _ in self.removing(payloads):
            pass

    def removing(self, payloads: np.ndarray) -> Iterator[None]:
        """Does the same as `remove` in slices, one per step of the iterator.

        Other calls may come between the slices.
        """
        if not len(payloads):
            return
        layouts = payloads[:, 0]
        if len(payloads) == 1 or (layouts == layouts[0]).all():
            groups = [payloads]
        else:
            groups = [payloads[rows] for rows in group(layouts)]
        room = SLICE
        for of_layout in groups:
            layout = self.get(of_layout[0, 0])
            for start in range(0, len(of_layout), layout.items_per_slice):
                if room <= 0:
                    yield
                    room = SLICE
                part = of_layout[start : start + layout.items_per_slice]
                if self._held is None:
                    slots = self._remove(layout, part[:, 1])
                    yield from layout.store.releasing(slots)
                else:
                    self._held.append(part)
                room -= len(part) * layout.width

    def _remove(self, layout: Layout, rows: np.ndarray) -> np.ndarray:
        """Removes items; returns their slots, whose references remain."""
        slots = layout.remove(rows)
        if layout.is_empty:
            del self._by_key[layout.key]
            self._free.append(layout.number)
            self._layouts[layout.number] = None
            layout.number = -1
        return slots

    def _register(self, layout: Layout) -> None:
        self._by_key[layout.key] = layout
        if self._free:
            layout.number = self._free.pop()
            self._layouts[layout.number] = layout
        else:
            layout.number = len(self._layouts)
            self._layouts.append(layout)

    def _check_memory(self, growth: int) -> None:
        self._unchecked += growth
        if self._unchecked > _CHECKED_BYTES:
            size, self._unchecked = self._unchecked, 0
            memory.check(size)


def group(numbers: np.ndarray) -> list[np.ndarray]:
    """Returns one array of indices for each distinct number, in ascending order."""
    if not len(numbers):
        return []
    order = numbers.argsort(kind="stable")
    changes = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(order, changes)
