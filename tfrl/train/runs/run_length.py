"""The end of a run: an iteration, or a number of environment steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.train.loops import training_loop


@dataclasses.dataclass(frozen=True)
class RunLength:
    """The length of a run, in one of two units.

    Attributes:
      num_iterations: The iteration at which the run ends; None if it ends by its
        environment steps.
      num_environment_steps: The environment steps, summed over all environments, at
        which it ends, after the iteration that reaches them; None if it ends by its
        iterations.
    """

    num_iterations: int | None
    num_environment_steps: int | None

    def check(self, loop: training_loop.TrainingLoop) -> None:
        """Raises an error unless the length is valid for the loop.

        Raises:
          ValueError: Not exactly one of the numbers is given, it is not positive, or
            the loop has no environment whose steps it could count.
        """
        if (self.num_iterations is None) == (self.num_environment_steps is None):
            given = "neither" if self.num_iterations is None else "both"
            raise ValueError(
                "num_iterations, num_environment_steps: expected exactly one of them, "
                f"got {given}."
            )
        for name, value in dataclasses.asdict(self).items():
            if value is not None:
                number_checks.check_integer(name, value, 1, remedy="train for longer")
        if self.num_iterations is None and loop.most_steps_per_iteration == 0:
            raise ValueError(
                f"num_environment_steps: got {self.num_environment_steps:,}, but "
                f"{type(loop).__name__} steps no environment; give num_iterations."
            )

    @property
    def total(self) -> int:
        """The number at which the run ends."""
        return self.num_iterations or self.num_environment_steps or 0

    def with_total(self, total: int) -> RunLength:
        """Returns the length of `total` in the same unit."""
        if self.num_iterations is None:
            return RunLength(None, total)
        return RunLength(total, None)

    @property
    def unit(self) -> str:
        """The name of the unit of `total`, for users."""
        return "environment steps" if self.num_iterations is None else "iterations"

    def most_iterations(self, most_steps_per_iteration: int | None) -> int:
        """Returns a number of iterations that the run does not exceed.

        Args:
          most_steps_per_iteration: See `iterations_left`.
        """
        if self.num_iterations is not None:
            return self.num_iterations
        # An episode has at least a step, and at its end another one only resets.
        return 2 * self.total // (most_steps_per_iteration or 2) + 1

    def done(self, info: training_loop.IterationInfo) -> int:
        """Returns the part of `total` that is done."""
        if self.num_iterations is None:
            return info.environment_steps
        return info.iteration

    def is_reached(self, info: training_loop.IterationInfo) -> bool:
        """Whether the run is done."""
        return self.done(info) >= self.total

    def next_stop(
        self,
        info: training_loop.IterationInfo,
        most_steps_per_iteration: int | None,
        intervals: Iterable[int],
    ) -> int:
        """Returns the next iteration at which something is due, or the run may end.

        Args:
          info: See `iterations_left`.
          most_steps_per_iteration: See `iterations_left`.
          intervals: The iterations between things that are due.
        """
        left = self.iterations_left(info, most_steps_per_iteration)
        stops = [next_multiple(info.iteration, each) for each in intervals]
        return min(info.iteration + left, *stops)

    def iterations_left(
        self, info: training_loop.IterationInfo, most_steps_per_iteration: int | None
    ) -> int:
        """Returns the number of iterations, at least 1, before the run can end.

        Args:
          info: The counters of the loop.
          most_steps_per_iteration: The largest number of steps of an iteration; None if
            there is no limit.
        """
        left = self.total - self.done(info)
        if self.num_iterations is None:
            left = left // most_steps_per_iteration if most_steps_per_iteration else 1
        return max(left, 1)


def next_multiple(number: int, interval: int) -> int:
    """Returns the smallest multiple of `interval` that is greater than `number`."""
    return (number // interval + 1) * interval
