"""A thread that steps an environment while the program does other work."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any


class SteppingThread:
    """Calls one function at a time on a thread of its own, which starts at first use.

    The thread does not keep the program from ending, and ends with this object.
    """

    def __init__(self) -> None:
        """Makes no thread yet."""
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_started = False
        self.is_busy = False

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Starts a call; `result` must take the result of the one before."""
        if not self._is_started:
            threading.Thread(
                target=_serve,
                args=(self._calls, self._results),
                name="environment step",
                daemon=True,
            ).start()
            weakref.finalize(self, self._calls.put, None)
            self._is_started = True
        self.is_busy = True
        self._calls.put((function, arguments))

    def result(self) -> Any:
        """Waits for the call; returns its result, or raises its exception."""
        value, error = self._results.get()
        self.is_busy = False
        if error is not None:
            raise error
        return value


def _serve(calls: queue.SimpleQueue[Any], results: queue.SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        function, arguments = call
        value = raised = None
        try:
            value = function(*arguments)
        except BaseException as error:  # The caller raises it.
            raised = error
        results.put((value, raised))
        # The thread waits, and must keep nothing alive.
        del call, function, arguments, value, raised
