"""`LateEvaluations`, evaluations that run elsewhere while a run trains."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Protocol

from tfrl.eval import evaluate


class LateEvaluations(Protocol):
    """The interface that `train.Run` takes instead of a function that evaluates."""

    def begin(self, iteration: int) -> None:
        """Starts to evaluate the agent's policy, with its current weights."""

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
        """Evaluates the policy with its current weights, and waits for the result."""
