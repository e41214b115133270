"""How many episodes the items of a table are of."""

from __future__ import annotations

import heapq

import numpy as np


class EpisodeCounts:
    """Items by episode.

    Attributes:
      deleted: How many times the last item of an episode has been deleted.
    """

    def __init__(self) -> None:
        """Creates counts of no items."""
        self.clear()

    def __len__(self) -> int:
        """Returns how many episodes there are items of."""
        return len(self._items)

    def clear(self) -> None:
        """Forgets everything."""
        self._items: dict[int, int] = {}
        self.deleted = 0

    def add(self, episodes: np.ndarray) -> None:
        """Adds an item of each of the episodes `[N]`."""
        items = self._items
        for episode in episodes.tolist():
            items[episode] = items.get(episode, 0) + 1

    def remove(self, episodes: np.ndarray) -> None:
        """Removes an item of each of the episodes `[N]`."""
        for episode in episodes.tolist():
            self._remove(episode)

    def exchange(self, added: np.ndarray, removed: np.ndarray) -> None:
        """Adds and removes items of the episodes `[N]` in turns."""
        items = self._items
        for new, old in zip(added.tolist(), removed.tolist(), strict=True):
            items[new] = items.get(new, 0) + 1
            self._remove(old)

    def _remove(self, episode: int) -> None:
        """Removes an item of an episode."""
        left = self._items[episode] - 1
        if left:
            self._items[episode] = left
        else:
            del self._items[episode]
            self.deleted += 1


def order_of_removal(first: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns the rows that a batch of inserts evicts in the order it evicts them.

    Args:
      first: `[N]` rows that go, in the remover's order of all items.
      new: `[N]` rows of the new items, each of which evicts one when it comes; so it
        cannot evict one that comes after it.
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
