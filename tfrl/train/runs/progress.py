"""Reports a run's progress: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

import tqdm

from tfrl.system import log
from tfrl.train.runs import run_length

if TYPE_CHECKING:
    from tfrl.train.loops import training_loop

# The speed is measured here, because tqdm's speed includes evaluations.
_BAR = "{l_bar}{bar}| {n:,}/{total:,} [{elapsed}{postfix}]"


class Progress:
    """Shows the progress of a run, its speed and its latest returns.

    On a terminal it redraws one bar; elsewhere (a file, a batch job) it prints a line
    every `seconds_between_lines`. The speed is in steps of the environments, or in
    updates for a loop without an environment.
    """

    def __init__(
        self,
        first: training_loop.IterationInfo,
        length: run_length.RunLength,
        stream: TextIO | None = None,
        seconds_between_lines: float = 10.0,
        words: Callable[[], Sequence[str]] = tuple,
        *,
        is_shown: bool = True,
    ) -> None:
        """Shows the bar on a terminal; elsewhere, starts the period of the lines.

        Args:
          first: The counters with which the run starts or resumes.
          length: The length of the run.
          stream: The stream to write to; the standard error if None.
          seconds_between_lines: The period of the lines, if the stream is not a
            terminal.
          words: Returns further text; called whenever the progress is shown.
          is_shown: Whether to show anything but announcements.
        """
        self._stream = stream or sys.stderr
        self._last = first
        self._length = length
        self._training, self._collection = _Work(), _Work()
        self._last_line = time.monotonic()
        self._seconds_between_lines = seconds_between_lines
        self._words = words
        self._evaluation: list[str] = []
        self._begun: set[str] = set()
        self._is_shown = is_shown
        self._bar = None
        if is_shown and self._stream.isatty():
            self._bar = tqdm.tqdm(
                total=length.total,
                initial=length.done(first),
                bar_format=_BAR,
                dynamic_ncols=True,
                file=self._stream,
            )

    def speeds(self) -> dict[str, float]:
        """Returns the speeds of training since the run started or resumed.

        Evaluations, the compilation and the collection of initial experience do not
        count. The keys are fields of a `RunResult`.
        """
        work = self._training
        return {
            "iterations_per_second": work.per_second(work.iterations),
            "environment_steps_per_second": work.per_second(work.steps),
            "updates_per_second": work.per_second(work.updates),
        }

    def begin(self, activity: str) -> None:
        """Shows an activity of the run, such as "evaluating", when it first begins.

        The first call of a compiled program takes seconds. This explains the wait: next
        to the bar on a terminal, and as a line elsewhere.
        """
        if activity in self._begun:
            return
        self._begun.add(activity)
        if self._bar is not None:
            self._bar.set_postfix_str(activity)
        else:
            self.note(f"{self._place()}: {activity}")

    def update(self, info: training_loop.IterationInfo, seconds: float) -> None:
        """Shows the state after a call of the loop.

        Args:
          info: The counters after the call, and its mean loss.
          seconds: The time of the call.
        """
        before, self._last = self._last, info
        done = self._length.done(info) - self._length.done(before)
        # A call without iterations compiles the program, or collects initial
        # experience; it takes no steps when it compiles.
        if info.iteration > before.iteration:
            self._training.add(before, info, done, seconds)
        elif info.environment_steps > before.environment_steps:
            self._collection.add(before, info, done, seconds)
        if self._bar is not None:
            self._bar.set_postfix_str(self._beside_bar(), refresh=False)
            self._bar.update(min(done, self._length.total - self._bar.n))
        elif self._is_line_due():
            self.show()

    def show(self) -> None:
        """Writes the state as a line, unless a bar shows it."""
        if self._bar is not None:
            return
        speed = ", ".join(self._speed())
        place = self._place() + f" ({speed})" * bool(speed)
        state = ", ".join(self._state())
        told = f": {state}" if state else ""
        self.note(", ".join([place, *self._steps()]) + told)

    def evaluating(self, finished: int, num_episodes: int, num_steps: int) -> None:
        """Shows the progress of an evaluation.

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
            self.note(f"{self._place()}, {text}")

    def evaluated(self, mean: float, best: float | None) -> None:
        """Shows the returns of an evaluation; in lines, the next update does.

        Args:
          mean: The mean return.
          best: The best policy's mean return; None if the policy is the untrained one.
        """
        compared = "untrained" if best is None else f"best {best:.1f}"
        self._evaluation = [f"evaluation {mean:.1f} ({compared})"]
        if self._bar is not None:
            self._bar.set_postfix_str(self._beside_bar())

    def _beside_bar(self) -> str:
        """Returns the text next to the bar."""
        # The bar itself counts the steps of a length in steps.
        steps = self._steps() if self._length.num_iterations else []
        return ", ".join(self._speed() + steps + self._state())

    def _place(self) -> str:
        """Returns the progress of the run, such as "iteration 5 of 10"."""
        iteration = f"iteration {self._last.iteration:,}"
        if self._length.num_iterations is None:
            return iteration
        return f"{iteration} of {self._length.total:,}"

    def _steps(self) -> list[str]:
        """Returns the number of environment steps as text, if there are any."""
        steps = self._last.environment_steps
        if not steps:
            return []
        wanted = self._length.num_environment_steps
        of_all = f" of {wanted:,}" if wanted else ""
        return [f"{steps:,}{of_all} environment steps"]

    def _state(self) -> list[str]:
        """Returns the latest returns, and further text."""
        return [*_state(self._last), *self._evaluation, *self._words()]

    def _speed(self) -> list[str]:
        """Returns the speed, and the remaining time of training if known."""
        is_training = self._training.seconds > 0
        work = self._training if is_training else self._collection
        if not work.seconds:
            return []
        if self._last.environment_steps:
            speed = f"{speed_text(work.per_second(work.steps))} steps a second"
        else:
            speed = f"{speed_text(work.per_second(work.updates))} updates a second"
        if not (is_training and work.done):
            return [speed]
        left = max(self._length.total - self._length.done(self._last), 0)
        seconds = tqdm.tqdm.format_interval(left * work.seconds / work.done)
        return [speed, f"{seconds} left"]

    def _is_line_due(self) -> bool:
        """Whether to print a line now; if so, the period of the next one starts."""
        now = time.monotonic()
        is_early = now - self._last_line < self._seconds_between_lines
        if is_early or not self._is_shown:
            return False
        self._last_line = now
        return True

    def note(self, text: str) -> None:
        """Writes a line of the progress, above the bar if there is one."""
        if self._is_shown:
            self.announce(text)

    def announce(self, text: str) -> None:
        """Writes a line even if the progress is not shown."""
        if self._bar is not None or self._stream is not sys.stderr:
            tqdm.tqdm.write(text, file=self._stream)
        else:
            log.info(text)

    def close(self) -> None:
        """Closes the bar, and leaves it on the screen."""
        if self._bar is not None:
            self._bar.close()


@dataclasses.dataclass
class _Work:
    """The work of some calls of a loop, and the time of these calls."""

    iterations: int = 0
    steps: int = 0
    updates: int = 0
    done: int = 0
    seconds: float = 0.0

    def add(
        self,
        before: training_loop.IterationInfo,
        after: training_loop.IterationInfo,
        done: int,
        seconds: float,
    ) -> None:
        """Adds a call.

        Args:
          before: The counters before the call.
          after: The counters after it.
          done: Its part of the run's length.
          seconds: Its time.
        """
        self.iterations += after.iteration - before.iteration
        self.steps += after.environment_steps - before.environment_steps
        self.updates += after.train_steps - before.train_steps
        self.done += done
        self.seconds += seconds

    def per_second(self, amount: int) -> float:
        """Returns an amount of the work in a second; 0 before the first call."""
        return amount / self.seconds if self.seconds else 0.0


def speed_text(speed: float) -> str:
    """Returns a speed as text, with two digits if it is small."""
    return f"{speed:,.0f}" if speed >= 10 or not speed else f"{speed:.2g}"


def _state(info: training_loop.IterationInfo) -> list[str]:
    """Returns the latest return, or the loss of a loop without an environment."""
    if info.episodes:
        return [f"return {info.average_return:.1f}"]
    if info.environment_steps:
        return ["no episode has ended"]
    return [] if math.isnan(info.loss) else [f"loss {info.loss:.4g}"]
