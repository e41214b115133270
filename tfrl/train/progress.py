"""Reports a run's progress: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

import tqdm

from tfrl.train import loop


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

    def update(self, info: loop.IterationInfo) -> None:
        """Shows the state after a call of the loop."""
        text = f"return {info.average_return:.1f}{self._evaluation}"
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(info.iteration - self._last)
        self._last = info.iteration
        now = time.monotonic()
        if self._bar is None and now - self._last_line >= self._seconds_between_lines:
            self._last_line = now
            speed = (self._last - self._first) / (now - self._started)
            self.note(
                f"iteration {info.iteration:,} of {self._total:,} "
                f"({speed:,.0f} a second), {info.environment_steps:,} environment "
                f"steps: {text}"
            )

    def evaluated(self, mean: float, best: float) -> None:
        """Records the returns of an evaluation; the next update shows them."""
        self._evaluation = f", evaluation {mean:.1f} (best {best:.1f})"

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
