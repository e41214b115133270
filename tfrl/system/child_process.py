"""`ChildProcess`: a fresh interpreter that runs a function and answers requests.

Children are never forks: TensorFlow's threads do not survive one. Nor do they import
the script of the user again: what they run travels by cloudpickle, which sends along
whatever `__main__` or a notebook defines. So scripts need no `if __name__ ==
"__main__"`. A child ends when its parent does, however that came about.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cloudpickle

from tfrl.system import channel as channels
from tfrl.system import child_errors, interpreter, state_savers

_CODE = "from tfrl.system import child_main; child_main.main(*map(int, sys.argv[1:]))"
_SLICE = 0.2  # Seconds between looks at whether silent children are alive.
_MERCY = 1.0  # Seconds between asking a child to end and killing it.
_LONGEST_STACK = 1 << 14  # Bytes.
_REAP = 1.0  # Seconds for the system to hand over a dead child.


class Reply:
    """The answer to one request, which may be still to come."""

    __slots__ = ("child", "error", "kind", "payload", "what")

    def __init__(self, child: ChildProcess, what: str):
        """Starts without an answer.

        Args:
          child: Who is to answer.
          what: The request in a word, for error messages.
        """
        self.child = child
        self.what = what
        self.kind: int | None = None
        self.payload = b""
        self.error: child_errors.ChildRaisedError | None = None


class ChildProcess:
    """A child process, from its start to its end.

    It answers requests one after the other, in the order in which they were sent.
    `ready` is the reply by which it says that it has started. Windows has no such
    processes, only POSIX systems do.
    """

    def __init__(self, target: Callable[[channels.Channel], None], name: str):
        """Starts the process, and does not wait for it.

        Args:
          target: Called in the child with its channel. It sends a message of kind
            `channel.READY` first, then one for each message that it receives, and
            returns when it is to end. Exceptions that it lets pass are sent for it.
          name: What error messages call the child.

        Raises:
          TypeError: If `target` does not pickle; see cloudpickle.
          OSError: If the process cannot be started.
        """
        self.name = name
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
        """Whether the process runs."""
        return self._process.poll() is None

    def is_busy(self) -> bool:
        """Whether it has not answered all requests yet, as far as is known."""
        return bool(self._outstanding)

    def request(self, kind: int, payload: bytes = b"", what: str = "a call") -> Reply:
        """Sends a message and returns the reply, to be waited for with `wait`.

        Raises:
          ChildDiedError: If the process has ended.
        """
        reply = Reply(self, what)
        try:
            self._channel.send(kind, payload)
        except channels.ChannelClosedError:
            if not self._outstanding:
                raise self.death(what) from None
            # It may have said why before it ended.
            wait([self._outstanding[-1]], _REAP, "")
            raise self.death(what) from None
        self._outstanding.append(reply)
        return reply

    def send_file(self, fd: int) -> None:
        """Gives the child a file, which it takes with `Channel.receive_file`."""
        self._channel.send_file(fd)

    def fileno(self) -> int:
        """The file descriptor that is ready when a message has come."""
        return self._channel.fileno()

    def read(self) -> None:
        """Reads one message, the answer to the oldest request that has none.

        Raises:
          ChildDiedError: If there is none to come, since the child has ended.
        """
        try:
            kind, payload = self._channel.receive()
        except channels.ChannelClosedError:
            raise self.death(self._outstanding[0].what) from None
        reply = self._outstanding.popleft()
        reply.kind, reply.payload = kind, payload
        if kind == channels.RAISED:
            reply.error = child_errors.raised(self.name, reply.what, payload)

    def death(self, what: str) -> child_errors.ChildDiedError:
        """Returns the error for a child that ended during `what`."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_REAP)
        return child_errors.died(self.name, what, self.pid, code)

    def stack(self) -> str:
        """Returns the Python stack of a child that hangs, or ""."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
        text = b""
        for _ in range(10):
            time.sleep(0.02)
            before, text = text, os.pread(self._stack.fileno(), _LONGEST_STACK, 0)
            if text and text == before:
                break
        return text.decode(errors="replace")

    def kill(self) -> None:
        """Kills the process, and all that it started, at once."""
        if self._owner == os.getpid() and self.is_alive():
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def release(self, deadline: float) -> None:
        """Waits for the process to end, kills it after `deadline`, and frees it.

        To be asked to end is up to its target; see `stop_all`.
        """
        if self._released:
            return
        self._released = True
        self._channel.close()
        for signum in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(max(0.0, deadline - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signum)
                deadline = time.monotonic() + _MERCY
        if self._process.wait():
            # It did not end by itself, and may have left something that it started.
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        os.close(self._lifeline)
        self._stack.close()


def dumps(value: Any) -> bytes:
    """Pickles `value` for a child, with all of the user's script that it needs.

    Raises:
      Exception: Of many types, if it does not pickle.
    """
    # In processes of multiprocessing the script has another name than __main__.
    main = sys.modules.get("__mp_main__")
    if main is not None and main.__name__ == "__mp_main__":
        cloudpickle.register_pickle_by_value(main)
    return cloudpickle.dumps(value)


def wait(replies: Iterable[Reply], timeout: float | None, argument: str) -> None:
    """Waits until all of `replies` have come, in whatever order they come.

    The first that fails ends the waiting, so that a child which hangs does not keep
    secret that another one died.

    Args:
      replies: Each of another child.
      timeout: The seconds to wait for all of them; None waits forever.
      argument: What the user calls `timeout`, for the error message.

    Raises:
      ChildDiedError: If a child died.
      ChildRaisedError: If what a child ran raised.
      ChildTimeoutError: If time is up. The children that hang are killed.
    """
    pending = {}
    poller = select.poll()
    for reply in replies:
        _raise_error_of(reply)
        if reply.kind is None:
            pending[reply.child.fileno()] = reply
            poller.register(reply.child.fileno(), select.POLLIN)
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
    """Asks all children to end, and kills those that have not after `grace` seconds.

    Args:
      children: The processes.
      kind: The message that has a target return; it answers when it has tidied up.
      grace: The seconds for all of them together.

    Raises:
      ChildRaisedError: If one raised; all children have ended nevertheless.
    """
    # A fork of this process has no business with them.
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
                break  # It is dead, or killed by now.
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
    """Raises for a dead child whose connection something that it started holds open."""
    for reply in replies:
        if not reply.child.is_alive() and not _is_readable(reply.child):
            raise reply.child.death(reply.what)


def _is_readable(child: ChildProcess) -> bool:
    poller = select.poll()
    poller.register(child.fileno(), select.POLLIN)
    return bool(poller.poll(0))


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
