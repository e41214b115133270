"""Trains with tfrl until a greedy evaluation reaches a return; see `score_time`.

python -m benchmarks.workers.score_time_with_tfrl TASK SEED
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tfrl
from benchmarks.workers import score_time
from tfrl import train as training
from tfrl.algorithms import algorithm as base


class Evaluating(training.Callback):
    """Evaluates between iterations, and stops the run at the return."""

    def __init__(
        self, algorithm: Any, watch: score_time.Watch, steps_between: int
    ) -> None:
        """Keeps the algorithm, its watch and the steps between evaluations."""
        self._algorithm, self._watch = algorithm, watch
        self.interval = max(steps_between // algorithm.steps_per_iteration, 1)

    def on_interval(self, iteration: int) -> None:
        """Evaluates after each `interval` iterations.

        The steps count without those between episodes, in which no environment steps.
        """
        algorithm = self._algorithm
        collected = iteration * algorithm.steps_per_iteration
        if self._watch.is_due(algorithm.initial_steps + collected):
            self._watch.evaluate(algorithm.loop.info().environment_steps, self._predict)
        if self._watch.is_over:
            self.stop("the return is reached")

    def _predict(self, observations: Any) -> Any:
        return self._algorithm.predict(observations)[0]


def train(task: Mapping[str, Any], seed: int, watch: score_time.Watch) -> None:
    """Trains an algorithm of tfrl.

    Raises:
      RuntimeError: The run was interrupted.
    """
    algorithm: base.Algorithm = getattr(tfrl, task["algorithm"])(
        task["environment"], settings=task["settings"], seed=seed
    )
    algorithm.train_for(watch.steps)
    result = algorithm.run(
        callbacks=[Evaluating(algorithm, watch, task["every"])],
        evaluates=False,
        shows_progress=False,
    ).run()
    if not (result.finished or result.stopped_by):
        raise RuntimeError("the run was interrupted")


if __name__ == "__main__":
    score_time.main(train, ("tensorflow", "keras", "gymnasium", "numpy"))
