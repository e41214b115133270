"""Watches the worker processes of Gymnasium's `AsyncVectorEnv`.

Gymnasium waits for its workers one after the other and without a time limit, so after
the death of a worker `close` can wait for ever. A thread therefore waits for the
processes themselves: when one dies, or a call takes too long, the thread ends the
others, which ends every wait. A further process ends the workers if this process is
killed.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from typing import Any

from tfrl.system import child_errors

# multiprocessing gives 255 if another thread has taken the exit code.
_ORDERLY = (0, 255)
_GRACE = 1.0  # Seconds between the request to end and the kill.
_POLL = 0.5  # Seconds between looks at the time.


class WorkerWatch:
    """Ends all workers when one of them dies, and remembers which one died first.

    It also ends them at the `deadline` of a call, and when this process has ended.

    A worker that ends with exit code 0 does not count as dead: Gymnasium's workers end
    in this way after they have reported an exception of their environment.
    """

    def __init__(self, processes: Sequence[Any]):
        """Starts the thread that watches.

        Args:
          processes: The `multiprocessing.Process`es.
        """
        self._processes = list(processes)
        self._exit_codes: list[int | None] = []
        self._found = threading.Event()
        self._limit = _Limit()
        self._guard = _guard([process.pid for process in self._processes])
        receiver, sender = connection.Pipe(duplex=False)
        # The thread must not keep the environment alive, whose end stops the thread.
        self._thread = threading.Thread(
            target=_watch,
            args=(
                self._processes,
                receiver,
                self._exit_codes,
                self._found,
                self._limit,
            ),
            name="worker_watch",
            daemon=True,
        )
        self._thread.start()
        self._stop = weakref.finalize(self, _send_stop, sender)

    @contextlib.contextmanager
    def limited(self, seconds: float | None) -> Iterator[None]:
        """Ends the workers if the context takes longer; None for no limit."""
        if seconds is not None:
            self._limit.seconds = seconds
            self._limit.deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            self._limit.deadline = math.inf

    def death(self, what: str) -> child_errors.ChildError | None:
        """Returns the error for the worker that died first; None if none did.

        Args:
          what: The call during which the worker died, or that took too long.
        """
        # A process closes its pipes shortly before it has an exit code.
        self._found.wait(_GRACE)
        if self._limit.has_passed:
            return child_errors.timed_out(
                "vector_env: a member", what, self._limit.seconds, "step_timeout", ""
            )
        codes = self._exit_codes or [process.exitcode for process in self._processes]
        dead = [index for index, code in enumerate(codes) if code is not None]
        if not dead:
            return None
        killed = [index for index in dead if codes[index] != 0]
        index = (killed or dead)[0]
        return child_errors.died(
            f"vector_env: no answer from a worker (exit codes {codes}, None for one "
            f"that runs): member {index}",
            what,
            self._processes[index].pid,
            codes[index],
        )

    def stop(self) -> None:
        """Stops watching for workers that end, and waits for the thread."""
        self._stop()
        # Two threads that ask a process for its exit code can disturb each other.
        self._thread.join()

    @property
    def has_found_death(self) -> bool:
        """Whether a worker has died, or a call has taken too long."""
        return self._found.is_set()

    def end_all(self) -> None:
        """Ends all workers, whatever they are doing."""
        self.stop()
        _end_all(self._processes)

    def dismiss_guard(self) -> None:
        """Ends the guard's watch. All workers must have ended."""
        if self._guard is not None:
            self._guard.dismiss()


class _Limit:
    """The time by which a running call has to return; shared by two threads."""

    def __init__(self) -> None:
        self.seconds = math.inf
        self.deadline = math.inf  # A time of `time.monotonic`.
        self.has_passed = False


def _guard(pids: Sequence[int]) -> Any:
    """Returns a guard that ends processes after this one; None on Windows."""
    if sys.platform == "win32":
        return None
    from tfrl.system import orphan_guard

    return orphan_guard.OrphanGuard(pids)


def _watch(
    processes: list[Any],
    stop_receiver: Any,
    exit_codes: list[int | None],
    found: threading.Event,
    limit: _Limit,
) -> None:
    parent = os.getpid()
    running = {process.sentinel: process for process in processes}
    while running:
        ended = connection.wait([stop_receiver, *running], _POLL)
        if stop_receiver in ended or os.getpid() != parent:
            return
        if not ended and time.monotonic() > limit.deadline:
            limit.has_passed = True
            found.set()
            _end_all(processes)
            return
        for sentinel in ended:
            if _exit_code(running.pop(sentinel)) not in _ORDERLY:
                exit_codes[:] = [process.exitcode for process in processes]
                found.set()
                _end_all(processes)
                return


def _send_stop(sender: Any) -> None:
    # Closing the pipe is not enough, because a forked process may have a copy of it.
    with contextlib.suppress(OSError):  # The thread has ended already.
        sender.send_bytes(b"stop")
    sender.close()


def _exit_code(process: Any) -> int | None:
    """Returns the exit code of a process whose sentinel is ready."""
    deadline = time.monotonic() + _GRACE
    while process.exitcode is None and time.monotonic() < deadline:
        time.sleep(0.001)
    return process.exitcode


def _end_all(processes: Sequence[Any]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _GRACE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
