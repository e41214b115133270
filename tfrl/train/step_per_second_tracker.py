"""Measures the number of train steps per second."""

from __future__ import annotations

import time

import tensorflow as tf


class StepPerSecondTracker:
    """Divides the growth of a counter by the time that has passed."""

    def __init__(self, step: tf.Variable) -> None:
        """Starts to measure.

        Args:
          step: The counter, such as an agent's train step.
        """
        self._step = step
        self.restart()

    def restart(self) -> None:
        """Measures from now on."""
        self._start_step = int(self._step.numpy())
        self._start_time = time.perf_counter()

    def steps_per_second(self) -> float:
        """Returns the mean rate since the last restart; 0 if no time has passed."""
        steps = int(self._step.numpy()) - self._start_step
        seconds = time.perf_counter() - self._start_time
        return steps / seconds if seconds > 0 else 0.0
