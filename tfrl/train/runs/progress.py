"""Reports a run's progress: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

import tqdm

from tfrl.train.loops import training_loop


class Progress:
    """Shows a run's iteration, its speed and its latest returns.

    On a terminal it redraws one bar; elsewhere (a file, a batch job) it prints a line
    every `seconds_between_lines`.
    """

    def __init__(
        self,
        first_iteration: int,
        num_iterations: int,
        stream: TextIO | None = None,
        seconds_between_lines: float = 10.0,
    ) -> None:
        """Shows the bar on a terminal; elsewhere, starts the period of the lines.

        Args:
          first_iteration: The iteration at which the run starts or resumes.
          num_iterations: The iteration at which it ends.
          stream: The stream to write to; the standard error if None.
          seconds_between_lines: The period of the lines, if the stream is not a
            terminal.
        """
        self._stream = stream or sys.stderr
        self._first = self._last = first_iteration
        self._total = num_iterations
        self._started = self._last_line = time.monotonic()
        self._seconds_between_lines = seconds_between_lines
        self._evaluation = ""
        self._begun: set[str] = set()
        self._bar = None
        if self._stream.isatty():
            self._bar = tqdm.tqdm(
                total=num_iterations,
                initial=first_iteration,
                unit="it",
                unit_scale=True,
                dynamic_ncols=True,
                smoothing=0.1,
                file=self._stream,
            )

    def begin(self, activity: str) -> None:
        """Says what the run does now, such as "evaluating", if it does so first.

        The first call of a program takes seconds. A user sees why nothing else happens
        yet, on a terminal beside the bar and elsewhere as a line.
        """
        if activity in self._begun:
            return
        self._begun.add(activity)
        if self._bar is not None:
            self._bar.set_postfix_str(activity)
        else:
            self.note(f"iteration {self._last:,} of {self._total:,}: {activity}")

    def update(self, info: training_loop.IterationInfo) -> None:
        """Shows the state after a call of the loop."""
        collected = info.environment_steps > 0
        text = (
            f"return {info.average_return:.1f}"
            if collected
            else f"loss {info.loss:.4g}"
        ) + self._evaluation
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(info.iteration - self._last)
        self._last = info.iteration
        if self._bar is None and self._is_line_due():
            speed = (self._last - self._first) / (self._last_line - self._started)
            self.note(
                f"iteration {info.iteration:,} of {self._total:,} "
                f"({speed:,.0f} a second)"
                + (f", {info.environment_steps:,} environment steps" * collected)
                + f": {text}"
            )

    def evaluating(self, finished: int, num_episodes: int, num_steps: int) -> None:
        """Shows how far an evaluation is.

        Args:
          finished: The number of its episodes that have ended.
          num_episodes: The number of all its episodes.
          num_steps: The number of steps of each environment so far.
        """
        text = (
            f"evaluating: {finished} of {num_episodes} episodes ended, "
            f"{num_steps:,} steps of each environment"
        )
        if self._bar is not None:
            self._bar.set_postfix_str(text)
        elif self._is_line_due():
            self.note(f"iteration {self._last:,} of {self._total:,}, {text}")

    def evaluated(self, mean: float, best: float | None) -> None:
        """Records the returns of an evaluation; the next update shows them.

        Args:
          mean: The mean return.
          best: That of the best policy; None if the policy is the untrained one.
        """
        compared = "untrained" if best is None else f"best {best:.1f}"
        self._evaluation = f", evaluation {mean:.1f} ({compared})"

    def _is_line_due(self) -> bool:
        """Whether to print a line now; if so, the period of the next one starts."""
        now = time.monotonic()
        if now - self._last_line < self._seconds_between_lines:
            return False
        self._last_line = now
        return True

    def note(self, text: str) -> None:
        """Writes a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Closes the bar, and leaves it on the screen."""
        if self._bar is not None:
            self._bar.close()
