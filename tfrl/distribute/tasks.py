"""`Task`: the part of a run that one process has."""

from __future__ import annotations

from typing import NamedTuple

REPLAY, ACTOR, LEARNER = ROLES = ("replay", "actor", "learner")


class Task(NamedTuple):
    """The part of a run that one process has.

    Attributes:
      role: "replay", "actor" or "learner".
      number: Its number among the processes of this role, from 0.
    """

    role: str
    number: int = 0

    @property
    def title(self) -> str:
        """Its name in messages."""
        if self.role == ACTOR:
            return f"actor {self.number}"
        is_learner = self.role == LEARNER
        if self.number:
            return f"{'learner' if is_learner else 'replay server'} {self.number}"
        return "the learner" if is_learner else "the replay server"

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return f"{self.role}/{self.number}"
