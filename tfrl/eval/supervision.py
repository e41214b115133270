"""Lets the caller of an evaluation limit it, watch it and stop it.

A run calls a function of the user's to evaluate. The evaluators that this function
calls find the run's `Supervision` here.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator


class EvaluationInterruptedError(BaseException):
    """Stops an evaluation. It is not an `Exception`, so user code does not catch it."""


@dataclasses.dataclass(frozen=True)
class Supervision:
    """The limit of an evaluation, and its reports to its caller.

    Attributes:
      max_steps: The largest number of steps of each environment; None leaves the choice
        to the evaluator.
      field: The name of `max_steps` for the user.
      between_calls: A function that is called about twice a second with the numbers of
        finished episodes, of all episodes, and of steps of each environment. It may
        raise an `EvaluationInterruptedError`.
    """

    max_steps: int | None
    field: str
    between_calls: Callable[[int, int, int], None]


_current: contextvars.ContextVar[Supervision | None] = contextvars.ContextVar(
    "supervision", default=None
)


@contextlib.contextmanager
def supervised(supervision: Supervision) -> Iterator[None]:
    """Supervises the evaluations in this context."""
    token = _current.set(supervision)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Supervision | None:
    """Returns the supervision of this context, or None."""
    return _current.get()
