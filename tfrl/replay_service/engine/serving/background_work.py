"""Does work for which no client waits, in slices between the requests of clients."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import traceback
from collections.abc import Iterator

_TURN = 0.001  # Seconds after which the sessions have their turn.


class BackgroundWork:
    """A queue of work, such as releasing the steps of many items.

    Each piece of work is an iterator that does one slice of it per step.
    """

    def __init__(self) -> None:
        """Creates an empty queue."""
        self._queue: collections.deque[Iterator[None]] = collections.deque()

    def __len__(self) -> int:
        """Returns the number of unfinished pieces of work."""
        return len(self._queue)

    def add(self, work: Iterator[None]) -> None:
        """Adds work. Does its first slice immediately if no other work is waiting.

        So a small piece of work, of one slice, is usually finished on return. Without a
        running loop, all work is finished on return.
        """
        if self._queue:
            self._queue.append(work)
            return
        for _ in work:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_soon(self._run)
                self._queue.append(work)
                return

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _TURN
        while self._queue:
            try:
                for _ in self._queue[0]:
                    break
                else:
                    self._queue.popleft()
            except Exception:
                # A failure must not keep other work from being done.
                traceback.print_exc()
                self._queue.popleft()
            if loop.time() > end:
                break
        if self._queue:
            loop.call_soon(self._run)
