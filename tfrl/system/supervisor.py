"""Runs processes that belong together, and starts those again that are killed.

>>> import time
>>> from tfrl.system import function_process, supervisor
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

from tfrl.system import child_errors, function_process

_POLL = 0.05  # Seconds.
_LONGEST_PAUSE = 60.0  # Seconds before a process is started again.


class Process(Protocol):
    """What a supervisor starts, such as a `FunctionProcess`."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> function_process.Ending | None:
        """Returns how the process has ended; None while it runs."""

    def stop(self, grace: float) -> None:
        """Ends the process within so many seconds, and frees it."""


class Member(NamedTuple):
    """A process of a group.

    Attributes:
      name: Its name in messages.
      start: Starts it; takes how often it has been started before, and returns a
        `Process`.
      again: What `start` does after an end, for messages.
    """

    name: str
    start: Callable[[int], Process]
    again: str = "It is started again"


class MemberEndedError(RuntimeError):
    """Raised if a member has ended that is not started again."""


class Limits(NamedTuple):
    """When a supervisor gives up.

    Attributes:
      most_restarts: How often a process is started again within `window`.
      window: Seconds.
      grace: Seconds that a member has to stop.
    """

    most_restarts: int = 5
    window: float = 600.0
    grace: float = 60.0


_USUAL = Limits()


class Restarts:
    """Counts how often something was started again, and says when to do so."""

    def __init__(self, limits: Limits = _USUAL) -> None:
        """Starts without any.

        Args:
          limits: When to give up.
        """
        self._limits = limits
        self._times: collections.deque[float] = collections.deque()

    def next_pause(self, what: str, cause: BaseException | None = None) -> float:
        """Counts a restart; returns the seconds to wait before it, at first 0.

        Args:
          what: What has happened, for the error.
          cause: The exception that it was, if any.

        Raises:
          RuntimeError: It has happened too often.
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


def runs(function: function_process.Function, name: str) -> Callable[[int], Process]:
    """Returns a `Member.start` for a function that does not depend on the start."""
    return lambda _: function_process.FunctionProcess(function, name)


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

    A member that is killed is started again, at first at once and then after growing
    pauses, while the others go on. One that raises an exception would do so again: it
    ends the run.

    Args:
      members: The members, in the order of their start. The main one is stopped first,
        the others in reverse order.
      main: The name of the main member.
      is_stopped: Returns whether to stop all of them.
      recovers: The exceptions after which a member is started again, too, such as a
        lost connection.
      limits: When to give up.
      say: Takes a line about each member that has ended; prints on stderr if None.
      restarts: Whether to start a member again that has been killed. If not, the others
        are killed, too, because they cannot go on without it.

    Returns:
      What the function of the main member, a `FunctionProcess`, has returned; None if
      it was stopped before that.

    Raises:
      ChildRaisedError: A member has raised another exception.
      MemberEndedError: A member has ended, and `restarts` is False.
      RuntimeError: A member has ended too often.
    """
    group = [
        _Supervised(
            member, recovers, Restarts(limits) if restarts else None, say or _print
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
            grace = 0.0  # They wait for what does not come.
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
        self._due = float("-inf")  # When to start the process.

    def look_after(self) -> None:
        """Starts the process if it is due, or looks whether it has ended."""
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

    def _restart(self, process: Process, ending: function_process.Ending) -> None:
        """Frees an ended process, and says when to start it again."""
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
        self._say(f"{what}. {self.member.again} {when(pause)}; the others go on.")


def when(pause: float) -> str:
    """Returns when something is started again, for messages."""
    return f"in {pause:g} s" if pause else "now"


def _stop(
    chief: _Supervised,
    others: Sequence[_Supervised],
    recovers: tuple[type[BaseException], ...],
    grace: float,
) -> None:
    """Stops the processes one after the other; raises the first error of them.

    What another one than the chief would be started again for is no error any more.
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


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
