"""The steps to which a session's client may still refer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfrl.replay_service.engine.storage.step_store import StepStore

_LEAST = 64  # The least number of steps for which there is room.
_MANY = 1 << 16  # More room than this is given back when there are no steps.
_SLICE = 1 << 15  # Steps that are released together.


class SentSteps:
    """The slots of a session's steps, by step number.

    The collection holds a reference to each slot until `forgetting` or `close`.
    """

    def __init__(self, store: StepStore):
        """Creates an empty collection for steps in `store`."""
        self._store = store
        # The steps are at _start to _end, in the order of their numbers.
        self._numbers, self._slots = _arrays(_LEAST)
        self._start = self._end = 0

    def __len__(self) -> int:
        """Returns the number of steps."""
        return self._end - self._start

    def add(self, numbers: np.ndarray, slots: np.ndarray) -> None:
        """Adds steps, which replace earlier steps of the same numbers.

        Args:
          numbers: int64 `[n]`, the numbers of the steps, ascending.
          slots: int32 `[n]`, the slot of each step. The collection takes over the
            caller's reference to each slot.
        """
        if len(self) and numbers[0] <= self._numbers[self._end - 1]:
            numbers, slots = self._merged(numbers, slots)
            self._start = self._end = 0
        end = self._end + len(numbers)
        if end > len(self._numbers):
            end = self._make_room(len(numbers))
        self._numbers[self._end : end] = numbers
        self._slots[self._end : end] = slots
        self._end = end

    def slots(self, refs: np.ndarray) -> np.ndarray:
        """Returns the slots of the steps numbered `refs`, in the same shape.

        Raises:
          ValueError: If one of the steps is not available.
        """
        numbers = self._numbers[self._start : self._end]
        indices = numbers.searchsorted(refs)
        found = numbers.take(indices, mode="clip") == refs if len(numbers) else refs < 0
        if not found.all():
            raise ValueError(
                f"An item refers to step {refs[~found][0]}, which is not available: "
                "it was never sent, or the writer has released it."
            )
        return self._slots[self._start : self._end][indices]

    def forgetting(self, keep: int) -> Iterator[None]:
        """Releases the steps numbered below `keep`, in slices.

        Other calls may come between the slices.
        """
        while True:
            numbers = self._numbers[self._start : self._end][:_SLICE]
            count = int(numbers.searchsorted(keep))
            if count:
                self._store.release(self._slots[self._start : self._start + count])
                self._start += count
            if not len(self) and len(self._numbers) > _MANY:
                self._numbers, self._slots = _arrays(_LEAST)
                self._start = self._end = 0
            if count < _SLICE:
                return
            yield

    def close(self) -> Iterator[None]:
        """Empties the collection; returns an iterator that releases its steps.

        Each step of the iterator is a slice. Other calls may come between the slices.
        """
        slots = self._slots[self._start : self._end]
        self._numbers, self._slots = _arrays(_LEAST)
        self._start = self._end = 0
        return self._store.releasing(slots)

    def _merged(
        self, numbers: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns all steps, including added steps; releases replaced steps."""
        old_numbers = self._numbers[self._start : self._end]
        old_slots = self._slots[self._start : self._end]
        replaced = np.isin(old_numbers, numbers, assume_unique=True)
        self._store.release(old_slots[replaced])
        numbers = np.concatenate([old_numbers[~replaced], numbers])
        slots = np.concatenate([old_slots[~replaced], slots])
        order = numbers.argsort()
        return numbers[order], slots[order]

    def _make_room(self, count: int) -> int:
        """Moves the steps to the start of arrays with room for `count` more.

        Returns:
          The index of the end after `count` more steps.
        """
        held = len(self)
        # Twice the room, so that many small additions take little time each.
        numbers, slots = _arrays(max(2 * (held + count), _LEAST))
        numbers[:held] = self._numbers[self._start : self._end]
        slots[:held] = self._slots[self._start : self._end]
        self._numbers, self._slots = numbers, slots
        self._start, self._end = 0, held
        return held + count


def _arrays(room: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(room, np.int64), np.empty(room, np.int32)
