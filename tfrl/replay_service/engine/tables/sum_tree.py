"""A sum tree of many children a node, of which batches are set and drawn at once.

The leaves are weights, and every node of a level above is the sum of `FAN_OUT` nodes of
the level below. A sum is taken anew from its children whenever one of them is set,
never by adding differences, so that no error builds up, and equal weights make equal
trees. The top level is searched by its running sum.
"""

from __future__ import annotations

import numpy as np

FAN_OUT = 32
_TOP = 2048  # The most nodes of the top level: a running sum over them takes 4 us.
_TINY = np.finfo(np.float64).tiny

#: The largest weight. 2**32 of them can be added up.
LARGEST_WEIGHT = float(np.finfo(np.float64).max) / 2.0**33


class SumTree:
    """Weights of leaves that are numbered from 0, and their sums."""

    def __init__(self, capacity: int = 0) -> None:
        """Creates a tree of `capacity` leaves of weight 0."""
        self._levels = [np.zeros(0)]
        self._running: np.ndarray | None = None
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        """Makes place for the leaves below `capacity`; the old ones stay."""
        old = self._levels[0]
        if self._levels[0].size >= capacity and self._levels[0].size:
            return
        self._levels = [np.zeros(_padded(max(capacity, 1)))]
        self._levels[0][: old.size] = old
        while self._levels[-1].size > _TOP:
            self._levels.append(_sums(self._levels[-1].reshape(-1, FAN_OUT)))
        self._running = None

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._running_sum()[-1])

    @property
    def depth(self) -> int:
        """How many random numbers one draw takes."""
        return len(self._levels)

    def weights(self, leaves: np.ndarray) -> np.ndarray:
        """Returns the weights of `leaves`, an integer array of any shape."""
        return self._levels[0].take(leaves)

    def set(self, leaves: np.ndarray, weights: np.ndarray | float) -> None:
        """Sets weights.

        Args:
          leaves: `[N]` integers; if one is there twice its last weight counts.
          weights: `[N]` or one for all, from 0 to `LARGEST_WEIGHT`. Those below the
            least normal number of float64 (2e-308) become 0.
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
        """Makes all weights 0."""
        for level in self._levels:
            level[:] = 0.0
        self._running = None

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Returns leaves drawn in proportion to their weights, none of weight 0.

        Args:
          uniforms: `[N, depth]` numbers of [0, 1), of which each level takes its own,
            so that no precision is lost on the way down.

        Returns:
          `[N]` integers. The total must be positive.
        """
        # A target is below the last running sum (all are normal numbers or 0), so the
        # first one above it exists, and its node has a positive weight.
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


def _sums(children: np.ndarray) -> np.ndarray:
    """Returns the nodes above `children`, filled up to whole nodes again."""
    sums = np.add.reduce(children, axis=1)
    return np.concatenate([sums, np.zeros(_padded(sums.size) - sums.size)])


def _padded(size: int) -> int:
    """Returns the next multiple of the fan-out."""
    return -(-size // FAN_OUT) * FAN_OUT
