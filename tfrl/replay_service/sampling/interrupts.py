"""Makes Ctrl-C end the wait for samples, with a KeyboardInterrupt.

Python runs the handlers of signals in the main thread, but not while TensorFlow waits
there for an element of a dataset. So the thread that waits for samples checks whether
SIGINT has arrived meanwhile, and raises an error, with which TensorFlow returns to the
main thread.

An exception of the handler would be lost in a function that TensorFlow calls: it
becomes an UnknownError, or, in the constructor of TensorFlow's own exception, a
RuntimeError. So another handler replaces Python's. The new handler does the same,
except during these functions: then the KeyboardInterrupt is raised in the function that
has called TensorFlow.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Any

from tfrl.system import interrupts

# Parts of the paths of functions that call TensorFlow and wait for it.
_IN_TENSORFLOW = (
    f"{os.sep}tensorflow{os.sep}",
    os.path.join("tfrl", "compilation", ""),
)
_GENERATOR = os.path.join("sampling", "generator.py")
_PYTHON_CALLS = "script_ops.py"  # Calls the functions of `tf.numpy_function`.


class Interrupted(Exception):
    """Raised in the thread that waits for samples, to end the main thread's wait."""


class InterruptWatch:
    """Notices SIGINT while the main thread waits for samples."""

    def __init__(self) -> None:
        """Creates a watch that has not started."""
        # The receiver and the sender. On Windows the ends of a pipe cannot be made
        # non-blocking.
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._count = 0  # The number of interrupts that were noticed.
        self._is_pending = False  # Whether the handler must still be called.
        self._ends = False  # Whether an error ends the main thread's wait.
        self._is_deferred = False  # Whether KeyboardInterrupt is still to be raised.

    def start(self) -> None:
        """Starts to notice SIGINT, if this is the main thread.

        Changes nothing if the program has a handler, or a wakeup descriptor, of its
        own.
        """
        if not _is_main_thread():
            return
        if self._sockets is None:
            self._sockets = socket.socketpair()
            for end in self._sockets:
                end.setblocking(False)
            interrupts.lent_descriptors.add(self._sockets[1].fileno())
        # This is the main thread, so all signals that have arrived are handled.
        self._has_arrived()
        self._is_pending = False
        with contextlib.suppress(ValueError):  # Only the main interpreter may do this.
            own = self._sockets[1].fileno()
            other = signal.set_wakeup_fd(own, warn_on_full_buffer=False)
            if other not in (-1, own):
                signal.set_wakeup_fd(other)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self.handle)

    @interrupts.stands_for_default
    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raises KeyboardInterrupt as soon as TensorFlow would not lose it."""
        self._has_arrived()  # Signals that have arrived are handled now.
        self._is_pending = False
        ends, self._ends = self._ends, False
        caller = _caller_of_sampling(frame)
        if caller is None and ends:
            caller = _caller_of_tensorflow(frame)
        if caller is None:
            signal.default_int_handler(number, frame)
        elif not self._is_deferred:
            self._is_deferred = True
            self._raise_after(caller)

    def interrupt(self) -> int:
        """Returns the number of the interrupt that ends the current wait; 0 for none.

        Call this again and again while waiting for samples, in any thread.
        """
        if _is_main_thread():
            self._count += self._is_deferred
            return self._count if self._is_deferred else 0
        if self._has_arrived():
            self._is_pending = True
            self._count += 1
        if signal.getsignal(signal.SIGINT) != self.handle:
            self._is_pending = False  # Another handler gets the signals.
        if not self._is_pending:
            return 0
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        if frame is None or not _is_in_tensorflow(frame):
            return 0  # The handler is called soon.
        self._ends = True
        return self._count

    def after_fork(self) -> None:
        """Gives up the sockets, which the parent reads."""
        ends, self._sockets = self._sockets, None
        if ends is not None:
            interrupts.lent_descriptors.discard(ends[1].fileno())
            with contextlib.suppress(ValueError):
                signal.set_wakeup_fd(-1)

    def _raise_after(self, caller: FrameType) -> None:
        """Arranges that KeyboardInterrupt is raised when TensorFlow has returned.

        Args:
          caller: The frame of the function that has called TensorFlow.
        """
        previous = sys.getprofile()

        def profile(frame: FrameType, event: str, _argument: Any) -> None:
            # Either the caller ends, or it handles TensorFlow's error.
            error = sys.exc_info()[0]
            if (frame is caller and event == "return") or (
                error is not None and error.__module__.startswith("tensorflow.")
            ):
                sys.setprofile(previous)
                self._is_deferred = False
                raise KeyboardInterrupt

        sys.setprofile(profile)

    def _has_arrived(self) -> bool:
        """Returns whether SIGINT has arrived since the last call."""
        if self._sockets is None:
            return False
        try:
            return signal.SIGINT in self._sockets[0].recv(4096)
        except BlockingIOError:
            return False


WATCH = InterruptWatch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCH.after_fork)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_in_tensorflow(frame: FrameType) -> bool:
    """Returns whether the function of a frame calls TensorFlow."""
    return any(part in frame.f_code.co_filename for part in _IN_TENSORFLOW)


def _caller_of_sampling(frame: FrameType | None) -> FrameType | None:
    """Returns the frame whose call of TensorFlow has led to a wait for samples.

    Returns None if the main thread is in another function that TensorFlow has called,
    or in none.
    """
    is_own, is_in_tensorflow = False, True
    while frame is not None and not frame.f_code.co_filename.endswith(_PYTHON_CALLS):
        is_own = is_own or frame.f_code.co_filename.endswith(_GENERATOR)
        is_in_tensorflow = is_in_tensorflow and _is_in_tensorflow(frame)
        frame = frame.f_back
    # If it is only in TensorFlow's functions, it is about to enter one of our own.
    return frame.f_back if frame and (is_own or is_in_tensorflow) else None


def _caller_of_tensorflow(frame: FrameType | None) -> FrameType | None:
    """Returns the frame that calls TensorFlow, which may construct an exception."""
    while frame is not None and frame.f_code.co_name == "__init__":
        frame = frame.f_back
    return frame if frame and _is_in_tensorflow(frame) else None
