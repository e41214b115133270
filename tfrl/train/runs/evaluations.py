"""The evaluations of a run: when they are due, their limits, and their results.

An evaluation is a call of a function, for which training waits, or goes on elsewhere
while the run trains.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from tfrl.eval import evaluate as evaluate_lib
from tfrl.train.loops import training_loop
from tfrl.train.runs import progress, run_log
from tfrl.utils import number_checks


class LateEvaluations(Protocol):
    """The interface that `train.Run` takes instead of a function that evaluates."""

    def begin(self, iteration: int) -> None:
        """Starts to evaluate the agent's policy, with its current weights."""

    def take(
        self,
    ) -> Iterable[
        tuple[evaluate_lib.EvaluationResult, contextlib.AbstractContextManager[None]]
    ]:
        """Returns the evaluations that have ended since the last call.

        Returns:
          The result of each, with the iteration at which it began, and a context in
          which the agent has the weights that were evaluated.
        """

    def finish(self, iteration: int) -> evaluate_lib.EvaluationResult:
        """Evaluates the policy with its current weights, and waits for the result."""


Evaluate = Callable[[int], evaluate_lib.EvaluationResult] | LateEvaluations | None


@dataclasses.dataclass(frozen=True)
class EvaluationLimits:
    """The largest numbers of steps of each environment in an evaluation.

    They hold for an `Evaluator`, and are for policies whose episodes do not end. If one
    is reached, there is a warning, and the episodes that have not ended count with
    their returns so far.

    Attributes:
      max_eval_steps: The limit; None allows 100,000 steps for each episode of an
        environment.
      max_untrained_eval_steps: The limit for the untrained policy, before the first
        iteration; 0 leaves this evaluation out.

    Raises:
      ValueError: A number is too small.
    """

    max_eval_steps: int | None = None
    max_untrained_eval_steps: int = 1000

    def __post_init__(self) -> None:
        number_checks.check_integer(
            "max_eval_steps",
            1 if self.max_eval_steps is None else self.max_eval_steps,
            1,
            remedy="give a positive number",
        )
        number_checks.check_integer(
            "max_untrained_eval_steps",
            self.max_untrained_eval_steps,
            0,
            remedy="0 leaves the evaluation of the untrained policy out",
        )

    def supervised(
        self, iteration: int, between_calls: Callable[[int, int, int], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which evaluations have the limit of an iteration.

        Args:
          iteration: The iteration.
          between_calls: See `evaluate_lib.Supervision`.
        """
        field, limit = "max_eval_steps", self.max_eval_steps
        untrained = self.max_untrained_eval_steps
        if iteration == 0 and (limit is None or limit > untrained):
            field, limit = "max_untrained_eval_steps", untrained
        limits = evaluate_lib.Supervision(limit, field, between_calls)
        return evaluate_lib.supervised(limits)


class Evaluations:
    """The evaluations of a run.

    Attributes:
      last_return: The mean return of the last evaluation, or None.
    """

    def __init__(
        self,
        loop: training_loop.TrainingLoop,
        log: run_log.RunLog,
        evaluate: Evaluate,
        interval: int,
        limits: EvaluationLimits,
    ) -> None:
        """Stores the arguments; see `Run`."""
        self._loop = loop
        self._log = log
        self._late: LateEvaluations | None = None
        if evaluate is None or callable(evaluate):
            self._evaluate = evaluate
        else:
            self._late, self._evaluate = evaluate, evaluate.finish
        self._interval = interval
        self._limits = limits
        self._arrived: evaluate_lib.EvaluationResult | None = None
        self.last_return: float | None = None

    def are_due(self, iteration: int) -> bool:
        """Whether one is due at an iteration before the last."""
        if iteration == 0:
            return self._limits.max_untrained_eval_steps > 0
        return iteration % self._interval == 0

    def give_result_at(self, iteration: int, *, at_end: bool) -> bool:
        """Whether the row of an iteration has the result of an evaluation there.

        A late result is in another row, except at the end of the run.
        """
        is_due = at_end or (self.are_due(iteration) and self._late is None)
        return is_due and self._evaluate is not None

    def evaluate(
        self, bar: progress.Progress, interrupted: Callable[[], bool], *, at_end: bool
    ) -> evaluate_lib.EvaluationResult | None:
        """Evaluates the policy, or begins to evaluate it elsewhere.

        Returns:
          The result; None if it comes late, or nothing evaluates.

        Raises:
          EvaluationInterruptedError: `interrupted` has ended the evaluation.
        """
        if self._late is not None and not at_end:
            self._late.begin(self._loop.iteration)
            return None
        if self._evaluate is None:
            return None
        started = time.monotonic()
        try:
            result = self._evaluate_now(self._evaluate, bar, interrupted)
        finally:
            self._log.spent("evaluating_seconds", time.monotonic() - started)
        self.last_return = result.mean
        return result

    def _evaluate_now(
        self,
        evaluate: Callable[[int], evaluate_lib.EvaluationResult],
        bar: progress.Progress,
        interrupted: Callable[[], bool],
    ) -> evaluate_lib.EvaluationResult:
        bar.begin("evaluating the policy")

        def between_calls(finished: int, num_episodes: int, num_steps: int) -> None:
            if interrupted():
                raise evaluate_lib.EvaluationInterruptedError
            bar.evaluating(finished, num_episodes, num_steps)

        with self._limits.supervised(self._loop.iteration, between_calls):
            result = evaluate(self._loop.iteration)
        info = self._loop.info()
        return dataclasses.replace(
            result, iteration=info.iteration, environment_steps=info.environment_steps
        )

    def take_late(
        self,
    ) -> Iterator[
        tuple[evaluate_lib.EvaluationResult, contextlib.AbstractContextManager[None]]
    ]:
        """Yields the evaluations elsewhere that have ended; see `LateEvaluations`."""
        for result, weights in () if self._late is None else self._late.take():
            self.last_return, self._arrived = result.mean, result
            yield result, weights

    def take_arrived(self) -> evaluate_lib.EvaluationResult | None:
        """Returns the last late result, for the next row; None if it was taken."""
        arrived, self._arrived = self._arrived, None
        return arrived
