"""The roles of a run's processes, and `Task`, the work of one of them."""

from __future__ import annotations

from typing import NamedTuple

ROLES = ("replay", "actor", "evaluator", "learner")
REPLAY, ACTOR, EVALUATOR, LEARNER = ROLES


class Task(NamedTuple):
    """The work of one process in a run.

    Attributes:
      role: One of `ROLES`.
      number: The number of the process among the processes of this role, from 0.
    """

    role: str
    number: int = 0

    @property
    def title(self) -> str:
        """The name of the task in messages."""
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
        """The name of the task in JSON."""
        return f"{self.role}/{self.number}"
