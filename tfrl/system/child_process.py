"""`ChildProcess`: a fresh interpreter that runs a function and answers requests.

Children are never forked, because TensorFlow's threads do not survive a fork. They do
not import the user's script again, either: functions are sent with cloudpickle,
including all definitions of `__main__` or a notebook. So scripts need no `if __name__
== "__main__"`. A child always ends with its parent.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import cloudpickle

from tfrl.system import channel as channels
from tfrl.system import child_errors, interpreter, posix, state_savers

_CODE = "from tfrl.system import child_main; child_main.main(*map(int, sys.argv[1:]))"
_SLICE = 0.2  # Seconds between checks whether silent children are alive.
_MERCY = 1.0  # Seconds between the request to end and killing a child.
_REAP = 1.0  # Seconds for the system to report a dead child.


class Reply:
    """The answer to one request, which may not have arrived yet."""

    __slots__ = ("child", "error", "kind", "payload", "what")

    def __init__(self, child: ChildProcess, what: str):
        """Creates a reply without an answer.

        Args:
          child: The child that has to answer.
          what: The request in a word, for error messages.
        """
        self.child = child
        self.what = what
        self.kind: int | None = None
        self.payload = b""
        self.error: child_errors.ChildRaisedError | None = None


class ChildProcess:
    """A child process, on POSIX systems.

    It answers requests in the order in which they were sent.

    Attributes:
      name: The name of the child in error messages.
      ready: The reply that arrives when the child has started.
    """

    def __init__(
        self,
        target: Callable[[channels.Channel], None],
        name: str,
        then: str = child_errors.NEW_CHILD,
    ):
        """Starts the process without waiting for it.

        Args:
          target: A function that runs in the child and takes its channel. It must first
            send a message of kind `channel.READY`, then one message for each message
            that it receives, and return when it is asked to end. Its exceptions are
            sent to the parent.
          name: The name of the child in error messages.
          then: A sentence about the steps after the remedy, for error messages.

        Raises:
          NotImplementedError: On Windows.
          TypeError: If `target` does not pickle; see cloudpickle.
          OSError: If the process cannot be started.
        """
        posix.check(name)
        self.name = name
        self._then = then
        self._owner = os.getpid()
        self._released = False
        self._outstanding: collections.deque[Reply] = collections.deque()
        payload = dumps((state_savers.collect_states(), target))
        self._stack = tempfile.TemporaryFile()  # noqa: SIM115
        ours, theirs = socket.socketpair()
        self._channel = channels.Channel(ours)
        reading, self._lifeline = os.pipe()
        try:
            self._process = _start([theirs.fileno(), reading, self._stack.fileno()])
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(reading)
            theirs.close()
        self.ready = self.request(channels.READY, payload, "starting")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Returns whether the process is running."""
        return self._process.poll() is None

    def exit_code(self) -> int | None:
        """Returns the return code, as `Popen.returncode`; None if it has not ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_REAP)
        return None

    def is_busy(self) -> bool:
        """Returns whether requests without a received answer exist."""
        return bool(self._outstanding)

    def request(self, kind: int, payload: bytes = b"", what: str = "a call") -> Reply:
        """Sends a message and returns its reply, for `wait`.

        Args:
          kind: The kind of the message.
          payload: The bytes of the message.
          what: The request in a word, for error messages.

        Raises:
          ChildDiedError: If the process has ended.
        """
        reply = Reply(self, what)
        try:
            self._channel.send(kind, payload)
        except channels.ChannelClosedError:
            if not self._outstanding:
                raise self.death(what) from None
            # The child may have sent a reason before it ended.
            wait([self._outstanding[-1]], _REAP, "")
            raise self.death(what) from None
        self._outstanding.append(reply)
        return reply

    def send_file(self, fd: int) -> None:
        """Sends an open file, which the child receives with `Channel.receive_file`."""
        self._channel.send_file(fd)

    def fileno(self) -> int:
        """Returns the file descriptor that is readable when a message has arrived."""
        return self._channel.fileno()

    def read(self) -> None:
        """Reads one message: the answer to the oldest unanswered request.

        Raises:
          ChildDiedError: If the child has ended.
        """
        try:
            kind, payload = self._channel.receive()
        except channels.ChannelClosedError:
            raise self.death(self._outstanding[0].what) from None
        reply = self._outstanding.popleft()
        reply.kind, reply.payload = kind, payload
        if kind == channels.RAISED:
            reply.error = child_errors.raised(
                self.name, reply.what, payload, self._then
            )

    def death(self, what: str) -> child_errors.ChildDiedError:
        """Returns the error for the end of the child during the request `what`."""
        return child_errors.died(
            self.name, what, self.pid, self.exit_code(), self._then
        )

    def stack(self) -> str:
        """Returns the Python stack of the child, or ""."""
        return posix.stack(self.pid, self._stack.fileno())

    def kill(self) -> None:
        """Kills the process, and all processes that it has started."""
        if self._owner == os.getpid() and self.is_alive():
            posix.end_group(self.pid, kills=True)
            self._process.wait()

    def release(self, deadline: float) -> None:
        """Waits for the process to end, kills it after `deadline`, and frees it.

        The caller must have asked the target to end; see `stop_all`.

        Args:
          deadline: The time limit, as `time.monotonic`.
        """
        if self._released:
            return
        self._released = True
        self._channel.close()
        for kills in (False, True):
            try:
                self._process.wait(max(0.0, deadline - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                posix.end_group(self.pid, kills)
                deadline = time.monotonic() + _MERCY
        self._process.wait()
        # It may have left processes behind, whatever the reason of its end.
        posix.end_group(self.pid, kills=True)
        os.close(self._lifeline)
        self._stack.close()


def dumps(value: Any) -> bytes:
    """Pickles `value` for a child, including definitions of the user's script.

    Raises:
      Exception: If the value cannot be pickled. There are many types of errors.
    """
    # In processes of multiprocessing, the script is not named __main__.
    main = sys.modules.get("__mp_main__")
    if main is not None and main.__name__ == "__mp_main__":
        cloudpickle.register_pickle_by_value(main)
    return cloudpickle.dumps(value)


def wait(replies: Iterable[Reply], timeout: float | None, argument: str) -> None:
    """Waits until all replies have arrived, in any order.

    The first failure ends the wait, so that a hanging child does not hide the death of
    another.

    Args:
      replies: Replies of different children.
      timeout: The number of seconds to wait for all of them; None for no limit.
      argument: The name under which the user sets `timeout`, for error messages.

    Raises:
      ChildDiedError: If a child has died.
      ChildRaisedError: If the function in a child has raised an exception.
      ChildTimeoutError: If time is up. The hanging children are killed.
    """
    pending = {}
    for reply in replies:
        _raise_error_of(reply)
        if reply.kind is None:
            pending[reply.child.fileno()] = reply
    poller = posix.poller(pending)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    while pending:
        left = min(_SLICE, deadline - time.monotonic())
        if timeout is not None and left <= 0:
            raise _give_up(list(pending.values()), timeout, argument)
        events = poller.poll(1000 * left)
        for fd, _ in events:
            reply = pending[fd]
            reply.child.read()
            _raise_error_of(reply)
            if reply.kind is not None:
                poller.unregister(fd)
                del pending[fd]
        if not events:
            _look_for_dead(pending.values())


def stop_all(children: Sequence[ChildProcess], kind: int, grace: float) -> None:
    """Asks all children to end, and kills the remaining ones after `grace` seconds.

    Args:
      children: The processes.
      kind: The kind of the message after which a target answers and returns.
      grace: The number of seconds for all of them together.

    Raises:
      ChildRaisedError: If a child has raised an exception. All children have ended
        nevertheless.
    """
    # A fork of the owner must not end them.
    children = [
        child
        for child in children
        if child._owner == os.getpid() and not child._released
    ]
    deadline = time.monotonic() + grace
    error = None
    replies = []
    for child in children:
        with contextlib.suppress(child_errors.ChildError, OSError):
            replies.append(child.request(kind, what="close"))
    for reply in replies:
        while reply.kind is None:
            try:
                wait([reply], max(0.01, deadline - time.monotonic()), "the grace")
            except child_errors.ChildRaisedError as first:
                error = error or first
            except child_errors.ChildError:
                break  # The child is dead or killed.
    for child in children:
        child.release(deadline)
    if error is not None:
        raise error


def _start(inherited: list[int]) -> subprocess.Popen[bytes]:
    return interpreter.start(
        _CODE,
        [*inherited, os.getpid()],
        stdin=subprocess.DEVNULL,
        pass_fds=inherited,
    )


def _raise_error_of(reply: Reply) -> None:
    if reply.error is not None:
        raise reply.error


def _look_for_dead(replies: Iterable[Reply]) -> None:
    """Raises an error for a dead child whose own children keep its connection open."""
    for reply in replies:
        if not reply.child.is_alive() and not posix.is_readable(reply.child.fileno()):
            raise reply.child.death(reply.what)


def _give_up(
    late: list[Reply], timeout: float, argument: str
) -> child_errors.ChildTimeoutError:
    first = late[0]
    stack = first.child.stack()
    for reply in late:
        reply.child.kill()
    name = first.child.name
    if len(late) > 1:
        name += " (and " + ", ".join(reply.child.name for reply in late[1:]) + ")"
    return child_errors.timed_out(name, first.what, timeout, argument, stack)


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
        self._child = ChildProcess(
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
        stop_all([self._child], _STOP, grace)
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
