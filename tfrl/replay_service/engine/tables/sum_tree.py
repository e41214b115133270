"""A sum tree with many children per node, which sets and draws leaves in batches.

The leaves are weights. Every other node is the sum of `FAN_OUT` nodes of the level
below. Setting a leaf recomputes the sums above the leaf from their children, rather
than adding differences. So rounding errors do not accumulate, and equal weights give
equal trees. The top level is searched by its running sum.
"""

from __future__ import annotations

import numpy as np

from tfrl.replay_service.engine import arrays as arrays_lib

FAN_OUT = 32
_TOP = 2048  # Maximum number of nodes in the top level; their running sum takes 4 us.
_TINY = np.finfo(np.float64).tiny

#: The largest weight. The sum of 2**32 of them is finite.
LARGEST_WEIGHT = float(np.finfo(np.float64).max) / 2.0**33


class WeightTree:
    """Stores weights, numbered from 0, as the leaves of a tree of sums."""

    def __init__(self, capacity: int = 0) -> None:
        """Creates a tree with `capacity` leaves of weight 0."""
        self._reserved = 0
        self._grow([np.zeros(0)], capacity)

    def grow(self, capacity: int, reserved: int = 0) -> None:
        """Grows the tree to at least `capacity` leaves and keeps the weights.

        Args:
          capacity: The number of leaves.
          reserved: See `arrays.grown`.
        """
        self._reserved = max(reserved, self._reserved)
        if self._levels[0].size < capacity:
            self._grow(self._levels, capacity)

    def _grow(self, old: list[np.ndarray], capacity: int) -> None:
        """Sets levels for `capacity` leaves, which begin with `old`."""
        size, reserved = _padded(max(capacity, 1)), _padded(self._reserved)
        self._levels = [arrays_lib.grown(old[0], size, reserved)]
        while size > _TOP:
            children = self._levels[-1].reshape(-1, FAN_OUT)
            size, reserved = _padded(size // FAN_OUT), _padded(reserved // FAN_OUT)
            if len(self._levels) < len(old):
                level = arrays_lib.grown(old[len(self._levels)], size, reserved)
            else:
                level = arrays_lib.grown(np.zeros(0), size, reserved)
                level[: len(children)] = np.add.reduce(children, axis=1)
            self._levels.append(level)
        self._running: np.ndarray | None = None

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._running_sum()[-1])

    @property
    def depth(self) -> int:
        """The number of random numbers per draw."""
        return len(self._levels)

    def weights(self, leaves: np.ndarray) -> np.ndarray:
        """Returns the weights of `leaves`, an integer array of any shape."""
        return self._levels[0].take(leaves)

    def set(self, leaves: np.ndarray, weights: np.ndarray | float) -> None:
        """Sets weights.

        Args:
          leaves: `[N]` integers. If a leaf occurs twice, its last weight is used.
          weights: `[N]`, or one weight for all leaves, from 0 to `LARGEST_WEIGHT`.
            Weights below the smallest normal float64 (2e-308) become 0.
        """
        self._levels[0][leaves] = np.where(np.less(weights, _TINY), 0.0, weights)
        nodes = leaves
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            children = below.reshape(-1, FAN_OUT)
            nodes = nodes // FAN_OUT
            if nodes.size < len(children):
                level[nodes] = np.add.reduce(children.take(nodes, axis=0), axis=1)
            else:
                level[: len(children)] = np.add.reduce(children, axis=1)
        self._running = None

    def clear(self) -> None:
        """Sets all weights to 0. This makes new arrays, so it is fast."""
        self._grow([np.zeros(0)], self._levels[0].size)

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draws leaves in proportion to their weights. The total must be positive.

        Args:
          uniforms: `[N, depth]` numbers in [0, 1). Each level uses its own column, so
            that no precision is lost on the way down.

        Returns:
          `[N]` integers, leaves of positive weight.
        """
        # A target is below the last running sum, because all sums are normal or 0.
        # So a first sum above the target exists, and its node has a positive weight.
        running = self._running_sum()
        nodes = running.searchsorted(uniforms[:, 0] * running[-1], side="right")
        for depth, level in enumerate(reversed(self._levels[:-1]), start=1):
            sums = level.reshape(-1, FAN_OUT).take(nodes, axis=0)
            np.add.accumulate(sums, axis=1, out=sums)
            targets = uniforms[:, depth] * sums[:, -1]
            nodes = nodes * FAN_OUT + (sums > targets[:, None]).argmax(axis=1)
        return nodes

    def _running_sum(self) -> np.ndarray:
        """Returns the running sum of the top level."""
        if self._running is None:
            self._running = np.add.accumulate(self._levels[-1])
        return self._running


def _padded(size: int) -> int:
    """Rounds up to a multiple of the fan-out."""
    return -(-size // FAN_OUT) * FAN_OUT
