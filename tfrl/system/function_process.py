"""`FunctionProcess`, a child process that runs a function until it is asked to stop."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from tfrl.system import channel as channels
from tfrl.system import child_errors, child_process, posix

# Requests; both have the answer _DONE.
_RUN = 2
_STOP = 3
_DONE = 2

# Takes a function that returns whether to stop; its result is pickled.
Function = Callable[[Callable[[], bool]], Any]


class Ending(NamedTuple):
    """How a process has ended.

    Attributes:
      how: A phrase, such as "was killed by SIGKILL", for messages.
      error: The exception that its function raised, a `ChildRaisedError`; else None.
      has_finished: Whether its function has returned.
    """

    how: str
    error: child_errors.ChildRaisedError | None = None
    has_finished: bool = False


class FunctionProcess:
    """Runs a function in a fresh interpreter, on POSIX systems.

    The process ends with its parent.
    """

    def __init__(self, function: Function, name: str) -> None:
        """Starts the process without waiting for it.

        Args:
          function: A function that takes `is_stopped`, a function without arguments,
            and calls it again and again to learn whether to stop.
          name: The name of the process in error messages.

        Raises:
          NotImplementedError: On Windows.
          TypeError: If `function` does not pickle; see cloudpickle.
          OSError: If the process cannot be started.
          ChildDiedError: If the process has ended at once.
        """
        self._child = child_process.ChildProcess(
            functools.partial(_serve, function), name, "then run the same again"
        )
        self._run = self._child.request(_RUN, what="its work")
        self._has_told = False  # Whether `poll` has returned an exception.

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def result(self) -> Any:
        """The result of the function; None while it runs, or if it has not returned."""
        return pickle.loads(self._run.payload) if self._run.kind == _DONE else None

    def poll(self) -> Ending | None:
        """Returns how the process has ended; None while its function runs."""
        try:
            while self._run.kind is None and posix.is_readable(self._child.fileno()):
                self._child.read()
                error = self._error()
                if error is not None:
                    self._has_told = True
                    return Ending("raised an exception", error)
            if self._run.kind is not None:
                return Ending("has finished", has_finished=True)
        except child_errors.ChildDiedError:
            return Ending(child_errors.describe_exit(self._child.exit_code()))
        if not self._child.is_alive() and not posix.is_readable(self._child.fileno()):
            return Ending(child_errors.describe_exit(self._child.exit_code()))
        return None

    def stop(self, grace: float) -> None:
        """Asks the function to stop, kills the process if it continues, and frees it.

        Args:
          grace: The number of seconds to wait.

        Raises:
          ChildRaisedError: The function has raised an exception, which `poll` has not
            returned.
        """
        child_process.stop_all([self._child], _STOP, grace)
        error = self._error()
        if error is not None and not self._has_told:
            raise error

    def _error(self) -> child_errors.ChildRaisedError | None:
        # The answer to the oldest unanswered request.
        return self._child.ready.error or self._run.error


def _serve(function: Function, channel: channels.Channel) -> None:
    """Runs the function when asked to, and ends after a request to stop."""
    channel.send(channels.READY)
    channel.receive()
    # The parent sends nothing else while the function runs.
    result = function(lambda: posix.is_readable(channel.fileno()))
    channel.send(_DONE, pickle.dumps(result))
    channel.receive()
    channel.send(_DONE)
