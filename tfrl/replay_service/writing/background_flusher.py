"""A thread that sends the waiting items of all writers of a process.

A writer usually sends items when one of its methods is called. The thread sends the
items of writers whose methods are not called for a while.
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
_AT_EXIT = 0.5  # Seconds to send the remaining items when the interpreter ends.


class Stream(Protocol):
    """A stream whose items are flushed in the background: `stream.WriterStream`.

    Attributes:
      lock: Protects the stream. `tick` and `close` hold it.
    """

    lock: threading.Lock

    def tick(self) -> bool:
        """Sends items that have waited long; returns whether to call `tick` again.

        Raises no error, because its thread serves other streams as well.
        """

    def close(self, timeout: float) -> None:
        """Sends the remaining items and waits for their confirmation."""

    def after_fork(self) -> None:
        """Continues in a forked process, with a new connection."""


class BackgroundFlusher:
    """Calls `tick` of all streams while any of them has waiting items.

    Attributes:
      event: Set this event to have `tick` of all streams called soon.
    """

    def __init__(self) -> None:
        """Creates a flusher without streams or thread."""
        self.event = threading.Event()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        atexit.register(self._close_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def add(self, stream: Stream) -> None:
        """Adds a stream, which is served for as long as it exists."""
        with self._lock:
            self._streams.add(stream)
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="tfrl-replay-writers", daemon=True
                )
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while True:
            self.event.wait()
            time.sleep(_PERIOD)
            self.event.clear()
            # any(...) would stop at the first stream that returns True.
            if sum([stream.tick() for stream in self._all()]):
                self.event.set()

    def _all(self) -> list[Stream]:
        with self._lock:
            return list(self._streams)

    def _close_all(self) -> None:
        deadline = time.monotonic() + _AT_EXIT
        for stream in self._all():
            _close_quietly(stream, max(deadline - time.monotonic(), 0.0))

    def _after_fork(self) -> None:
        """Restarts in a forked process, without threads and with fresh locks."""
        self._lock = threading.Lock()
        self.event = threading.Event()
        self._thread = None
        streams = list(self._streams)
        for stream in streams:
            stream.after_fork()
        if streams:
            self.add(streams[0])


BACKGROUND_FLUSHER = BackgroundFlusher()


def close_after_writer(stream: Stream, timeout: float) -> None:
    """Closes the stream of a writer that is being deleted; ignores its errors.

    The garbage collector can delete a writer in any thread, even in the middle of
    `tick`. A thread must not wait for its own lock, so another thread closes the
    stream.

    Args:
      stream: The stream.
      timeout: The number of seconds to wait for the confirmation of the items.
    """
    if stream.lock.locked():
        threading.Thread(
            target=_close_quietly, args=(stream, timeout), daemon=True
        ).start()
    else:
        _close_quietly(stream, timeout)


def _close_quietly(stream: Stream, timeout: float) -> None:
    with contextlib.suppress(Exception):  # Nobody can handle the error.
        stream.close(timeout)
