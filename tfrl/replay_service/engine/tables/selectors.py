"""Selectors, which find the items of a table to sample or to remove, in batches.

A selector keeps its own index of a table's `Columns`. An ordered selector returns the
first items (`first`); a random selector draws items (`draw`). If the sampler and
the remover of a table have the same strategy, one selector serves as both.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import sum_tree


class Selector(abc.ABC):
    """Base class of the selectors, each of which indexes the items of a table.

    Attributes:
      role: The prefix of the names of its state in the state of the table.
    """

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector for columns without items."""
        self._columns = columns
        self.role = ""

    @abc.abstractmethod
    def insert(self, rows: np.ndarray) -> None:
        """Adds the new items in rows `[N]`."""

    def replace(self, rows: np.ndarray) -> None:
        """Updates the index after new items replaced the items in rows `[N]`."""
        self.insert(rows)

    def update(self, rows: np.ndarray) -> None:
        """Updates the index for new priorities in rows `[N]`, which may repeat."""
        del rows  # Most selectors do not depend on priorities.

    def delete(self, rows: np.ndarray) -> None:
        """Updates the index after the items in rows `[N]` were deleted."""
        del rows  # Some selectors notice deleted items when they come across them.

    @abc.abstractmethod
    def clear(self) -> None:
        """Forgets all items."""

    def total_weight(self) -> float:
        """Returns the sum of the weights by which items are drawn, here 1 per item."""
        return float(self._columns.size)

    def check(self, priorities: np.ndarray) -> None:
        """Checks that the selector supports priorities `[N]`, finite and not negative.

        Raises:
          ValueError: If the selector does not support a priority.
        """
        del priorities  # Most selectors support all of them.

    def state(self) -> dict[str, np.ndarray]:
        """Returns the state that cannot be derived from the columns.

        A selector tells the cut of the columns before it changes one of the arrays.
        """
        return {}

    def restore(self, rows: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state that `state` returned.

        Args:
          rows: `[N]`, the rows of all items, oldest first.
          arrays: The result of `state`.
        """
        del arrays  # `state` returned none.
        self.insert(rows)


def checked(priorities: np.ndarray, selectors: Iterable[Selector]) -> np.ndarray:
    """Returns priorities as `[N]` float64, checked against all selectors.

    Raises:
      ValueError: If a priority is negative, not finite, or too large for a finite sum,
        or too large for a selector.
    """
    priorities = np.asarray(priorities, np.float64)
    if priorities.size == 0:
        return priorities
    # With a NaN, minimum and maximum are NaN and both comparisons are false.
    largest = sum_tree.LARGEST_WEIGHT
    if not (priorities.min() >= 0.0 and priorities.max() <= largest):
        good = (priorities >= 0.0) & (priorities <= largest)
        raise ValueError(
            f"priorities: got {priorities[good.argmin()]}, expected finite numbers "
            f"from 0 to {largest:.0e}; clip or replace it before it is sent."
        )
    for selector in selectors:
        selector.check(priorities)
    return priorities


class OrderedSelector(Selector):
    """A selector that orders all items."""

    @abc.abstractmethod
    def first(self, n: int) -> np.ndarray:
        """Returns the rows of the first `min(n, size)` items, in order."""


class RandomSelector(Selector):
    """A selector that gives every item a probability."""

    @abc.abstractmethod
    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows drawn with replacement; the table must not be empty.

        A batch consumes the same random numbers as the same draws one by one.

        Args:
          n: The number of draws.
          random: The source of randomness.
        """

    @abc.abstractmethod
    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns `(weights, total)`; row i has probability weights[i] / total."""


class UniformSelector(RandomSelector):
    """Gives all items the same probability; keeps their rows in an array."""

    def __init__(self, columns: columns_lib.Columns) -> None:
        """Creates a selector for columns without items."""
        super().__init__(columns)
        self._rows = np.zeros(0, np.int32)
        self._places = np.zeros(0, np.int32)  # For each row, its index in `_rows`.
        self._size = 0
        columns.when_grown(self._grow)

    def clear(self) -> None:
        """Forgets all items."""
        self._size = 0

    def insert(self, rows: np.ndarray) -> None:
        """Adds the new items in rows `[N]`."""
        stop = self._size + rows.size
        places = np.arange(self._size, stop)
        self._record(places)
        self._rows[self._size : stop] = rows
        self._places[rows] = places
        self._size = stop

    def replace(self, rows: np.ndarray) -> None:
        """Does nothing: the rows stay the same."""

    def delete(self, rows: np.ndarray) -> None:
        """Removes rows `[N]` and fills the gaps with the last rows."""
        size = self._size - rows.size
        places = self._places[rows]
        stays = np.ones(rows.size, bool)
        stays[places[places >= size] - size] = False
        moved = self._rows[size : self._size][stays]
        gaps = places[places < size]
        self._record(gaps)
        self._rows[gaps] = moved
        self._places[moved] = gaps
        self._size = size

    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows drawn with replacement; the table must not be empty."""
        # Below 2**53 the product never rounds up to the size.
        places = (random.random(n) * self._size).astype(np.int64)
        return self._rows.take(places).astype(np.int64)

    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns `(weights, total)`; row i has probability weights[i] / total."""
        return np.ones(rows.shape), float(self._size)

    def state(self) -> dict[str, np.ndarray]:
        """Returns the order of the rows, which determines the draws."""
        return {"rows": self._rows[: self._size]}

    def restore(self, rows: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Restores the order of the rows."""
        self.insert(arrays.get("rows", rows))

    def _record(self, places: np.ndarray) -> None:
        """Records, in the cut of the columns, the elements that will change."""
        if self._columns.cut is not None:
            self._columns.cut.record(self.role + ".rows", places)

    def _grow(self, capacity: int) -> None:
        """Grows the arrays to the capacity of the columns."""
        reserved = self._columns.reserved
        self._rows = arrays_lib.grown(self._rows, capacity, reserved)
        self._places = arrays_lib.grown(self._places, capacity, reserved)


class PrioritizedSelector(RandomSelector):
    """Gives items probabilities in proportion to a power of their priorities."""

    def __init__(self, columns: columns_lib.Columns, exponent: float) -> None:
        """Creates a selector for columns without items.

        Args:
          columns: The items.
          exponent: The power of the priorities.
        """
        super().__init__(columns)
        self._exponent = exponent
        self._tree = sum_tree.WeightTree()
        columns.when_grown(lambda rows: self._tree.grow(rows, columns.reserved))

    def clear(self) -> None:
        """Forgets all items."""
        self._tree.clear()

    def insert(self, rows: np.ndarray) -> None:
        """Adds the new items in rows `[N]`."""
        self._tree.set(rows, self._power(self._columns.priorities[rows]))

    def update(self, rows: np.ndarray) -> None:
        """Updates the index for new priorities in rows `[N]`, which may repeat."""
        self.insert(rows)

    def delete(self, rows: np.ndarray) -> None:
        """Updates the index after the items in rows `[N]` were deleted."""
        self._tree.set(rows, 0.0)

    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        """Returns `[n]` rows drawn with replacement; the table must not be empty."""
        uniforms = random.random((n, self._tree.depth))
        if self._tree.total > 0.0:
            return self._tree.draw(uniforms)
        rows = self._columns.living()
        return rows[(uniforms[:, 0] * rows.size).astype(np.int64)]

    def total_weight(self) -> float:
        """Returns the sum of the powers of priorities."""
        return self._tree.total

    def masses(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Returns `(weights, total)`; row i has probability weights[i] / total."""
        total = self._tree.total
        if total > 0.0:
            return self._tree.weights(rows), total
        return np.ones(rows.shape), float(self._columns.size)

    def check(self, priorities: np.ndarray) -> None:
        """Checks that the sum of the powers of priorities stays finite.

        Args:
          priorities: `[N]`, finite and not negative.

        Raises:
          ValueError: If the power of a priority is too large.
        """
        with np.errstate(over="ignore"):
            weights = self._power(priorities)
        if weights.size and not weights.max() <= sum_tree.LARGEST_WEIGHT:
            worst = priorities[np.argmax(weights)]
            raise ValueError(
                f"priorities: got {worst} to the power {self._exponent}, expected at "
                f"most {sum_tree.LARGEST_WEIGHT:.0e} for a finite sum; scale the "
                "priorities, for example by their mean."
            )

    def _power(self, priorities: np.ndarray) -> np.ndarray:
        """Returns the weights of items; priority 0 has weight 0 for any exponent."""
        if self._exponent == 1.0:
            return priorities
        if self._exponent > 0.0:
            return priorities**self._exponent
        positive = priorities > 0.0
        weights = np.zeros(priorities.shape)
        np.power(priorities, self._exponent, out=weights, where=positive)
        return weights
