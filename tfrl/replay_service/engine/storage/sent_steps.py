"""The steps that a session's client may still refer to."""

from __future__ import annotations

import numpy as np

from tfrl.replay_service.engine.storage.step_store import StepStore

_NO_SLOTS = np.empty(0, np.int32)


class SentSteps:
    """The slots of a session's steps, by step number.

    The collection holds a reference to each slot until `forget` or `close`.
    """

    def __init__(self, store: StepStore):
        """Creates an empty collection for steps in `store`."""
        self._store = store
        self._numbers = np.empty(0, np.int64)
        self._slots = _NO_SLOTS

    def __len__(self) -> int:
        """Returns the number of steps."""
        return len(self._numbers)

    def add(self, numbers: np.ndarray, slots: np.ndarray) -> None:
        """Adds steps, which replace earlier steps of the same numbers.

        Args:
          numbers: int64 `[n]`, the numbers of the steps, ascending.
          slots: int32 `[n]`, the slot of each step. The collection takes over the
            caller's reference to each slot.
        """
        if len(self._numbers) and numbers[0] <= self._numbers[-1]:
            replaced = np.isin(self._numbers, numbers, assume_unique=True)
            self._store.release(self._slots[replaced])
            numbers = np.concatenate([self._numbers[~replaced], numbers])
            slots = np.concatenate([self._slots[~replaced], slots])
            order = numbers.argsort()
            self._numbers, self._slots = numbers[order], slots[order]
        else:
            self._numbers = np.concatenate([self._numbers, numbers])
            self._slots = np.concatenate([self._slots, slots])

    def slots(self, refs: np.ndarray) -> np.ndarray:
        """Returns the slots of the steps numbered `refs`, in the same shape.

        Raises:
          ValueError: If one of the steps is not available.
        """
        numbers = self._numbers
        indices = numbers.searchsorted(refs)
        found = numbers.take(indices, mode="clip") == refs if len(numbers) else refs < 0
        if not found.all():
            raise ValueError(
                f"An item refers to step {refs[~found][0]}, which is not available: "
                "it was never sent, or the writer has released it."
            )
        return self._slots[indices]

    def forget(self, keep: int) -> None:
        """Releases the steps numbered below `keep`."""
        count = int(self._numbers.searchsorted(keep))
        if count:
            self._store.release(self._slots[:count])
            self._numbers = self._numbers[count:]
            self._slots = self._slots[count:]

    def close(self) -> None:
        """Releases all steps."""
        self._store.release(self._slots)
        self._slots = _NO_SLOTS
