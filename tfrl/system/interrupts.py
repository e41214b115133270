"""Turns signals into requests to stop, and ends a process that cannot stop.

Python runs its signal handlers on the main thread, between two instructions of Python.
While the main thread waits for a call of TensorFlow, no handler runs: if a step of an
environment hangs in that call, no signal reaches it. So another thread receives the
signals, too. It says which call the main thread is still in after a signal, and if a
second signal finds the main thread waiting, that thread ends the process.
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

# The signals that ask a run to save and to stop. Windows has no SIGHUP.
SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)
_HANGUP = getattr(signal, "SIGHUP", None)
# The number of seconds within which the main thread has to handle a signal.
_PATIENCE = 1.0
# The main thread may handle a signal before the watching thread receives it.
_SLACK = 0.1
_POLL = 0.02

# The wakeup descriptors that `requested` may replace for a while.
lent_descriptors: set[int] = set()

Describe = Callable[[], str | None]
Handler = TypeVar("Handler", bound=Callable[..., Any])

# The last signal that was a request to stop.
_last: int | None = None


class Terminated(SystemExit):
    """A signal other than SIGINT has stopped the program; the code is 128 + its number.

    For SIGINT there is KeyboardInterrupt.
    """


def exit_status() -> int:
    """Returns 128 + the number of the signal that has stopped the last `requested`.

    Without a signal it is 130, as for SIGINT.
    """
    return 128 + (signal.SIGINT if _last is None else _last)


def has_stopped(status: int) -> bool:
    """Whether a process with an exit status was told to stop by one of `SIGNALS`.

    Args:
      status: As of `subprocess.Popen`: negative if a signal ended it at once.
    """
    return any(status in (-number, 128 + number) for number in SIGNALS)


def stop() -> NoReturn:
    """Ends the program after the signal that has stopped the last `requested`.

    Raises:
      KeyboardInterrupt: The signal was SIGINT, or there was none.
      Terminated: It was another one.
    """
    raise _meaning(exit_status() - 128)


def _meaning(number: int) -> BaseException:
    """Returns the exception that stands for a signal."""
    is_interrupt = number == signal.SIGINT
    return KeyboardInterrupt() if is_interrupt else Terminated(128 + number)


@contextlib.contextmanager
def requested(
    signals: Sequence[signal.Signals], describe: Describe
) -> Iterator[Callable[[], bool]]:
    """Makes the first signal a request to stop, within this context.

    The main thread handles a second SIGINT by a KeyboardInterrupt, and a second SIGTERM
    by `Terminated(143)`. If it cannot, because a call does not return, the process
    prints a line and ends with status 130 or 143. Further SIGHUPs change nothing, since
    a terminal that closes may send several. On a thread other than the main thread,
    this context does nothing.

    A SIGHUP that the process ignores, as with nohup, stays ignored.

    Args:
      signals: Some of `SIGNALS`.
      describe: Returns the running call as text, for the messages, or None.

    Yields:
      A function that returns whether a signal has arrived.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    global _last
    _last = None
    taken = tuple(x for x in signals if x != _HANGUP or not _is_ignored(x))
    session = _Session(taken, describe)
    before = {number: signal.signal(number, session.handle) for number in taken}
    try:
        with _watcher().watching(session):
            yield session.is_requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


def stands_for_default(handler: Handler) -> Handler:
    """Marks a handler of SIGINT that raises KeyboardInterrupt, as Python's own does.

    A decorator: `deferred` may replace such a handler for a while.
    """
    handler.stands_for_default = True  # type: ignore[attr-defined]
    return handler


def is_default(handler: Any) -> bool:
    """Whether a handler of SIGINT is Python's own, or marked as its equivalent."""
    is_own = handler is signal.default_int_handler
    return is_own or getattr(handler, "stands_for_default", False)


def is_from_handler(error: BaseException) -> bool:
    """Whether the handler of a signal has raised an exception.

    Args:
      error: An exception that was caught while the handler is still installed.
    """
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)


@contextlib.contextmanager
def deferred(
    describe: Describe, signals: Sequence[signal.Signals] = (signal.SIGINT,)
) -> Iterator[Callable[[], bool]]:
    """Raises the exception of a signal when this context ends; see `stop`.

    Does nothing if SIGINT has a handler of the program's own, such as the one of an
    outer `requested`.

    Args:
      describe: See `requested`.
      signals: See `requested`.

    Yields:
      A function that returns whether a signal has arrived.
    """
    if not is_default(signal.getsignal(signal.SIGINT)):
        yield lambda: False
        return
    try:
        with requested(signals, describe) as is_requested:
            yield is_requested
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:
        if is_requested():
            raise _meaning(exit_status() - 128) from error
        raise
    if is_requested():
        stop()


class _Session:
    """The signals that have arrived within one `requested`."""

    def __init__(self, signals: tuple[int, ...], describe: Describe) -> None:
        self.signals = signals
        self.describe = describe
        self.received = 0  # Signals seen by the watching thread.
        # Signals seen by the main thread. Several signals that arrive while it waits
        # count as one.
        self.handled = 0
        self.handled_at = float("-inf")

    def is_requested(self) -> bool:
        return self.handled > 0

    def handle(self, number: int, _frame: Any) -> None:
        """Handles a signal on the main thread."""
        global _last
        self.handled += 1
        self.handled_at = time.monotonic()
        if number == _HANGUP:
            _leave_lost_terminal()
        if self.handled > 1 and number == _HANGUP:
            return
        _last = number
        if self.handled > 1:
            raise _meaning(number)


class _Watcher:
    """A thread that receives the signals of the current session.

    The interpreter writes each signal's number to a socket, on whatever thread the
    signal arrives and whatever Python is doing.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._session: _Session | None = None
        threading.Thread(target=self._watch, name="tfrl-signals", daemon=True).start()

    @contextlib.contextmanager
    def watching(self, session: _Session) -> Iterator[None]:
        """Watches the signals of `session`, unless another reader receives them."""
        other = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        if other != -1 and other not in lent_descriptors:  # An event loop's, perhaps.
            signal.set_wakeup_fd(other)
            yield
            return
        self._session = session
        try:
            yield
        finally:
            self._session = None
            signal.set_wakeup_fd(other, warn_on_full_buffer=False)

    def _watch(self) -> None:
        while True:
            for number in self._receiver.recv(1):
                session = self._session
                if session is not None and number in session.signals:
                    self._received(session, signal.Signals(number))

    def _received(self, session: _Session, number: signal.Signals) -> None:
        if number == _HANGUP and session.received:
            return
        session.received += 1
        is_first = session.received == 1
        if self._is_over(session, _describe(session) if is_first else None):
            return
        call = _describe(session) or "a call of TensorFlow"
        if is_first:
            _say(f"{number.name}: waiting for {call}. A second one ends the process.")
            return
        status = 128 + number
        _say(
            f"{number.name}: {call} does not return and cannot be interrupted, so the "
            f"process ends here with status {status}, without saving."
        )
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(status)

    def _is_over(self, session: _Session, call: str | None) -> bool:
        """Waits for the main thread to handle a signal that has just arrived.

        Returns True as soon as the main thread handles the signal or leaves the
        session, or a second signal arrives; False if the main thread stays in a call.
        If it runs the Python of `call` itself, it handles the signal and stays there.
        """
        arrived = time.monotonic() - _SLACK
        while time.monotonic() < arrived + _PATIENCE:
            is_in_call = call is not None and session.describe() == call
            if session.handled_at > arrived and not is_in_call:
                return True
            if self._session is not session:
                return True
            if session.received == 1 and select.select([self._receiver], [], [], 0)[0]:
                return True
            time.sleep(_POLL)
        return False


def _describe(session: _Session) -> str | None:
    """Returns the running call as text; short steps may need several attempts."""
    for _ in range(20):
        call = session.describe()
        if call is not None:
            return call
        time.sleep(_POLL / 10)
    return None


def _say(text: str) -> None:
    # This does not use sys.stderr, whose lock the main thread may hold.
    with contextlib.suppress(OSError):  # Its terminal may be closed.
        os.write(2, f"\n{text}\n".encode())


def _leave_lost_terminal() -> None:
    """Lets output to a terminal that has been closed go nowhere, without errors."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError as error:
            if error.errno == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


_current: _Watcher | None = None


def _watcher() -> _Watcher:
    """Returns the watcher of this process, which a fork does not inherit."""
    global _current
    if _current is None or _current.process != os.getpid():
        _current = _Watcher()
    return _current
