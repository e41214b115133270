"""Limits the connections whose clients have not sent a valid greeting."""

from __future__ import annotations

from typing import Protocol

from tfrl.replay_service import errors

_MOST_LOCAL = 512  # Connections of the Unix socket, which only this user can open.
_MOST_REMOTE = 256  # Connections of clients that know the token, if there is one.


class Newcomer(Protocol):
    """A session without a greeting."""

    def refuse(self, error: Exception) -> None:
        """Ends the session with an ERROR message."""


class Newcomers:
    """The sessions without a greeting, in order of arrival.

    A client sends its greeting within milliseconds, and connects again if it is
    refused. So if there are too many sessions, the session that has waited longest is
    ended.
    """

    def __init__(self) -> None:
        """Creates an empty collection."""
        # The keys are whether a session is local. Dictionaries keep the order.
        self._waiting: dict[bool, dict[Newcomer, None]] = {True: {}, False: {}}

    def __len__(self) -> int:
        """Returns the number of sessions."""
        return sum(map(len, self._waiting.values()))

    def add(self, session: Newcomer, is_local: bool) -> None:
        """Adds a session, and ends the oldest one if there are too many."""
        waiting = self._waiting[is_local]
        waiting[session] = None
        if len(waiting) > (_MOST_LOCAL if is_local else _MOST_REMOTE):
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.refuse(
                errors.ReplayUnavailable(
                    "Too many clients have connected without sending a greeting."
                )
            )

    def discard(self, session: Newcomer) -> None:
        """Removes a session, which has sent its greeting or has ended."""
        for waiting in self._waiting.values():
            waiting.pop(session, None)
