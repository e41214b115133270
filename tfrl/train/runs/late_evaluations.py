"""`LateEvaluations`: evaluations that go on elsewhere while a run trains."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Protocol

from tfrl.eval import evaluate


class LateEvaluations(Protocol):
    """What `train.Run` takes in place of a function that evaluates."""

    def begin(self, iteration: int) -> None:
        """Has the agent's policy evaluated, with the weights that it has now."""

    def take(
        self,
    ) -> Iterable[
        tuple[evaluate.EvaluationResult, contextlib.AbstractContextManager[None]]
    ]:
        """Returns the evaluations that have ended since the last call.

        Returns:
          The result of each, with the iteration at which it began, and a context in
          which the agent has the weights that were evaluated.
        """

    def finish(self, iteration: int) -> evaluate.EvaluationResult:
        """Evaluates the agent's policy as it is now, and waits for the result."""
