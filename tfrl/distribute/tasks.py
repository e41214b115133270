"""`Task`: the part of a run that one process has."""

from __future__ import annotations

from typing import NamedTuple

ROLES = ("replay", "actor", "evaluator", "learner")
REPLAY, ACTOR, EVALUATOR, LEARNER = ROLES


class Task(NamedTuple):
    """The part of a run that one process has.

    Attributes:
      role: One of `ROLES`.
      number: Its number among the processes of this role, from 0.
    """

    role: str
    number: int = 0

    @property
    def title(self) -> str:
        """Its name in messages."""
        if self.role == ACTOR:
            return f"actor {self.number}"
        if self.role == EVALUATOR:
            return "the evaluator"
        is_learner = self.role == LEARNER
        if self.number:
            return f"{'learner' if is_learner else 'replay server'} {self.number}"
        return "the learner" if is_learner else "the replay server"

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return f"{self.role}/{self.number}"
