"""The outcome of a run."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class RunResult:
    """The outcome of a run.

    Attributes:
      iteration: The total number of iterations.
      finished: False if the run was interrupted, or stopped by a callback.
      resumed_at: The iteration at which the run resumed, or None for a fresh start.
      best_return: The best mean return of an evaluation after an update, or None.
      last_return: The mean return of the last evaluation in this call of `run`, or
        None.
      iterations_per_second: Speed of training in this call, without the evaluations,
        the compilation and the collection of initial experience.
      stopped_by: The name of the callback that stopped the run, and its reason; None if
        none did.
      environment_steps_per_second: The speed in steps of the environments; 0 for a loop
        without an environment.
      updates_per_second: The speed in updates of the agent.
    """

    iteration: int
    finished: bool
    resumed_at: int | None
    best_return: float | None
    last_return: float | None
    iterations_per_second: float
    stopped_by: str | None = None
    environment_steps_per_second: float = 0.0
    updates_per_second: float = 0.0
