"""Counts the items of a table by episode."""

from __future__ import annotations

import heapq

import numpy as np

_PARTS = 64


class EpisodeCounts:
    """The number of items of each episode.

    Attributes:
      deleted: The number of times that the last item of an episode has been deleted.
    """

    def __init__(self) -> None:
        """Creates counts for an empty table."""
        self._parts: list[dict[int, int]] = []
        self.clear()

    def __len__(self) -> int:
        """Returns the number of episodes that have items."""
        return sum(map(len, self._parts))

    def clear(self) -> list[dict[int, int]]:
        """Resets all counts; returns the former counts, which are slow to delete."""
        former = self._parts
        # Growing one dictionary of all episodes would take long. So each of these
        # dictionaries holds a part of the episodes.
        self._parts = [{} for _ in range(_PARTS)]
        self.deleted = 0
        return former

    def add(self, episodes: np.ndarray) -> None:
        """Adds one item to each of the episodes `[N]`, which may repeat."""
        parts = self._parts
        for episode in episodes.tolist():
            part = parts[episode % _PARTS]
            part[episode] = part.get(episode, 0) + 1

    def remove(self, episodes: np.ndarray) -> None:
        """Removes one item from each of the episodes `[N]`, which may repeat."""
        for episode in episodes.tolist():
            self._remove(episode)

    def exchange(self, added: np.ndarray, removed: np.ndarray) -> None:
        """Adds and removes items of the episodes `[N]` in turn."""
        parts = self._parts
        for new, old in zip(added.tolist(), removed.tolist(), strict=True):
            part = parts[new % _PARTS]
            part[new] = part.get(new, 0) + 1
            self._remove(old)

    def _remove(self, episode: int) -> None:
        """Removes one item from an episode."""
        part = self._parts[episode % _PARTS]
        left = part[episode] - 1
        if left:
            part[episode] = left
        else:
            del part[episode]
            self.deleted += 1


def order_of_removal(first: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns the rows that a batch of inserts evicts, in the order of eviction.

    Args:
      first: `[N]` rows to evict, in the remover's order.
      new: `[N]` rows of the new items in the order of their inserts. Each insert evicts
        one item, which cannot be a new item that is inserted later.
    """
    places = {row: place for place, row in enumerate(first.tolist())}
    arrivals = new.tolist()
    coming = set(arrivals)
    waiting = [place for row, place in places.items() if row not in coming]
    order = []
    for row in arrivals:
        if row in places:
            heapq.heappush(waiting, places[row])
        order.append(heapq.heappop(waiting))
    return first[order]
