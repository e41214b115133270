"""Runs a group of processes, and restarts processes that are killed.

>>> import time
>>> from tfrl.system import supervisor
>>> def work(is_stopped):
...     while not is_stopped():
...         time.sleep(0.01)
>>> def finish(is_stopped):
...     time.sleep(0.1)
>>> supervisor.supervise(
...     [
...         supervisor.Member("worker", supervisor.runs(work, "worker")),
...         supervisor.Member("main", supervisor.runs(finish, "main")),
...     ],
...     main="main",
... )
"""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tfrl.system import child_errors, child_process, log

_POLL = 0.05  # Seconds.
_LONGEST_PAUSE = 60.0  # Seconds before a process is started again.


class Process(Protocol):
    """The interface of a supervised process, such as a `FunctionProcess`."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> child_process.Ending | None:
        """Returns how the process has ended; None while it runs."""

    def stop(self, grace: float) -> None:
        """Ends the process within `grace` seconds, and frees it."""


class Member(NamedTuple):
    """A process of a group.

    Attributes:
      name: The name of the member in messages.
      start: Starts the process; takes the number of earlier starts, and returns a
        `Process`.
      again: A sentence about a restart, for messages.
    """

    name: str
    start: Callable[[int], Process]
    again: str = "It is started again"


class MemberEndedError(RuntimeError):
    """Raised if a member that is not started again has ended."""


class Limits(NamedTuple):
    """The limits of a supervisor, after which it gives up.

    Attributes:
      most_restarts: The largest number of restarts of a process within `window`
        seconds.
      window: Seconds.
      grace: The number of seconds within which a member has to stop.
    """

    most_restarts: int = 5
    window: float = 600.0
    grace: float = 60.0


_USUAL = Limits()


class Restarts:
    """Counts the restarts of a process, and determines the pauses before them."""

    def __init__(self, limits: Limits = _USUAL) -> None:
        """Starts with no restarts.

        Args:
          limits: The limits after which to give up.
        """
        self._limits = limits
        self._times: collections.deque[float] = collections.deque()

    def next_pause(self, what: str, cause: BaseException | None = None) -> float:
        """Counts a restart; returns the seconds to wait before it, at first 0.

        Args:
          what: A phrase about the event, for the error.
          cause: The exception that caused it, if any.

        Raises:
          RuntimeError: There were too many restarts.
        """
        now, limits = time.monotonic(), self._limits
        while self._times and self._times[0] < now - limits.window:
            self._times.popleft()
        number = len(self._times)
        if number >= limits.most_restarts:
            such_as = ", such as too little memory," if cause is None else ""
            raise RuntimeError(
                f"{what}, for the {number + 1}th time within {limits.window:g} s; find "
                f"the cause{such_as} and run the same command again."
            ) from cause
        self._times.append(now)
        return 0.0 if number == 0 else min(2.0 ** (number - 1), _LONGEST_PAUSE)


def runs(function: child_process.Function, name: str) -> Callable[[int], Process]:
    """Returns a `Member.start` that runs the same function at every start."""
    return lambda _: child_process.FunctionProcess(function, name)


def supervise(
    members: Sequence[Member],
    main: str,
    is_stopped: Callable[[], bool] = lambda: False,
    recovers: tuple[type[BaseException], ...] = (),
    limits: Limits = _USUAL,
    say: Callable[[str], None] | None = None,
    *,
    restarts: bool = True,
) -> Any:
    """Runs all members until the main one has finished, then stops the others.

    A member that is killed is started again, at first immediately and later after
    growing pauses, while the other members continue. A member that raises an exception
    would raise it again, so the exception ends the run.

    Args:
      members: The members, in the order of their start. The main one is stopped first,
        the others in reverse order.
      main: The name of the main member.
      is_stopped: Returns whether to stop all members.
      recovers: The exceptions after which a member is started again, too, such as a
        lost connection.
      limits: The limits after which to give up.
      say: Takes a line about each member that has ended; `log.info` if None.
      restarts: Whether to restart a member that has been killed. If not, the other
        members are killed, too, because they cannot continue without it.

    Returns:
      The result of the main member, a `FunctionProcess`; None if it was stopped before
      it returned.

    Raises:
      ChildRaisedError: A member has raised another exception.
      MemberEndedError: A member has ended, and `restarts` is False.
      RuntimeError: A member has ended too often.
    """
    group = [
        _Supervised(
            member, recovers, Restarts(limits) if restarts else None, say or log.info
        )
        for member in members
    ]
    chief = next(one for one in group if one.member.name == main)
    grace = limits.grace
    try:
        while not (chief.has_finished or is_stopped()):
            for one in group:
                one.look_after()
            time.sleep(_POLL)
    except BaseException:
        if not restarts:
            grace = 0.0  # The others would wait for ever.
        raise
    finally:
        others = [one for one in reversed(group) if one is not chief]
        _stop(chief, others, recovers, grace)
    return getattr(chief.process, "result", None)


class _Supervised:
    """A member and its process."""

    def __init__(
        self,
        member: Member,
        recovers: tuple[type[BaseException], ...],
        restarts: Restarts | None,
        say: Callable[[str], None],
    ) -> None:
        self.member = member
        self.has_finished = False
        self.process: Process | None = None
        self._recovers = recovers
        self._restarts = restarts
        self._say = say
        self._starts = 0
        self._due = float("-inf")  # The time at which to start the process.

    def look_after(self) -> None:
        """Starts the process if it is due, or checks whether it has ended."""
        if self.has_finished:
            return
        if self.process is None:
            if time.monotonic() >= self._due:
                self.process = self.member.start(self._starts)
                self._starts += 1
            return
        ending = self.process.poll()
        if ending is None:
            return
        self.has_finished = ending.has_finished
        if not ending.has_finished:
            self._restart(self.process, ending)

    def _restart(self, process: Process, ending: child_process.Ending) -> None:
        """Frees an ended process, and schedules its restart."""
        error = ending.error
        if error is not None and not isinstance(error.original, self._recovers):
            raise error
        reason = f" ({error.original!r})" if error is not None else ""
        what = f"{self.member.name}: its process {process.pid} {ending.how}{reason}"
        self.process = None
        _stop_one(process, 0.0)
        if self._restarts is None:
            raise MemberEndedError(what) from error
        pause = self._restarts.next_pause(what, error)
        self._due = time.monotonic() + pause
        self._say(f"{what}. {self.member.again} {when(pause)}; the others continue.")


def when(pause: float) -> str:
    """Returns a phrase with the time of a restart, for messages."""
    return f"in {pause:g} s" if pause else "now"


def _stop(
    chief: _Supervised,
    others: Sequence[_Supervised],
    recovers: tuple[type[BaseException], ...],
    grace: float,
) -> None:
    """Stops the processes one after the other; raises their first error.

    An error that would only cause a restart is ignored, except in the chief.
    """
    errors = []
    for one in (chief, *others):
        error = None if one.process is None else _stop_one(one.process, grace)
        if error and (one is chief or not isinstance(error.original, recovers)):
            errors.append(error)
    if errors and sys.exception() is None:
        raise errors[0]


def _stop_one(process: Process, grace: float) -> child_errors.ChildRaisedError | None:
    try:
        process.stop(grace)
    except child_errors.ChildRaisedError as error:
        return error
    return None
