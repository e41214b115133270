"""Writes values on a separate thread."""

from __future__ import annotations

import atexit
import queue
import threading

from tfrl.loggers import base
from tfrl.utils import number_checks


class AsyncLogger:
    """Passes values to a thread that writes them, so that the caller need not wait.

    A write waits while the queue is full. Before `close` returns, all values are
    written; the end of the program closes the logger, too. The next call of `write` or
    `close` raises an error of the logger behind this one; the values written in between
    are lost.
    """

    def __init__(self, to: base.Logger, queue_size: int = 5) -> None:
        """Starts the thread.

        Args:
          to: The logger to write to.
          queue_size: The number of sets of values that may wait for the thread.

        Raises:
          ValueError: If `queue_size` is below 1.
        """
        number_checks.check_integer(
            "queue_size",
            queue_size,
            1,
            remedy="say how many writes may wait",
        )
        self._to = to
        self._queue: queue.Queue[base.Values | None] = queue.Queue(queue_size)
        self._error: BaseException | None = None
        self._is_closed = False
        self._thread = threading.Thread(
            target=self._write_all, name="tfrl-logger", daemon=True
        )
        self._thread.start()
        atexit.register(self.close)

    def write(self, values: base.Values) -> None:
        """Passes a copy of `values` to the thread.

        Raises:
          ValueError: If the logger is closed.
          BaseException: The error of an earlier write.
        """
        if self._is_closed:
            raise ValueError(
                "AsyncLogger: write was called after close, expected an open logger; "
                "close it after the last write."
            )
        self._raise_error()
        self._queue.put(dict(values))

    def close(self) -> None:
        """Waits until all values are written, and closes the logger behind this one.

        Raises:
          BaseException: The error of an earlier write.
        """
        if not self._is_closed:
            self._is_closed = True
            atexit.unregister(self.close)
            if self._thread.is_alive():  # A forked process lacks the thread.
                self._queue.put(None)
                self._thread.join()
            self._to.close()
        self._raise_error()

    def _write_all(self) -> None:
        while (values := self._queue.get()) is not None:
            # After an error the queue is emptied, so that nobody waits for a place.
            if self._error is None:
                try:
                    self._to.write(values)
                except BaseException as error:  # It would end the thread.
                    self._error = error

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
