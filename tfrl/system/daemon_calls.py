"""Calls in threads that do not keep the process alive, unlike those of an executor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

_T = TypeVar("_T")


def start(function: Callable[[], _T]) -> futures.Future[_T]:
    """Calls a function in a daemon thread.

    Args:
      function: The function.

    Returns:
      A future of its result, or of the exception that it raises.
    """
    future: futures.Future[_T] = futures.Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future
