"""One thread for all writers of a process, which sends what has waited for a while.

Writers send by themselves, in the calls that are made on them. This is for those on
which no call is made for a time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from typing import Protocol

_PERIOD = 0.025  # Seconds.
_AT_EXIT = 0.5  # Seconds for what has not been sent when the interpreter ends.


class Stream(Protocol):
    """A stream whose items are flushed in the background: `stream.WriterStream`."""

    def tick(self) -> bool:
        """Sends what has waited for long; returns whether to look again soon."""

    def close(self, timeout: float) -> None:
        """Sends what is left and waits for its confirmation."""

    def after_fork(self) -> None:
        """Continues, in a forked process, with a connection of its own."""


class BackgroundFlusher:
    """Calls `tick` of the streams that have something to do.

    Attributes:
      event: Set it to have the streams looked at soon.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        atexit.register(self._close_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def add(self, stream: Stream) -> None:
        """Looks after a stream for as long as it exists."""
        with self._lock:
            self._streams.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="tfrl-replay-writers", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            self.event.wait()
            time.sleep(_PERIOD)
            self.event.clear()
            # Not any(...), which would stop at the first.
            if sum([stream.tick() for stream in self._all()]):
                self.event.set()

    def _all(self) -> list[Stream]:
        with self._lock:
            return list(self._streams)

    def _close_all(self) -> None:
        deadline = time.monotonic() + _AT_EXIT
        for stream in self._all():
            with contextlib.suppress(Exception):  # No one is left to be told.
                stream.close(max(deadline - time.monotonic(), 0.0))

    def _after_fork(self) -> None:
        """Starts anew: threads do not come along, and locks come as they were."""
        self._lock = threading.Lock()
        self.event = threading.Event()
        self._thread = None
        streams = list(self._streams)
        for stream in streams:
            stream.after_fork()
        if streams:
            self.add(streams[0])


BACKGROUND_FLUSHER = BackgroundFlusher()
