"""Measures an agent for the log of its run, apart from training."""

from __future__ import annotations

import tensorflow as tf

from tfrl.train.loops import training_loop


class Diagnostics:
    """Computes the numbers of `TFAgent.diagnose` on a batch of the loop's experience.

    The batch is drawn with a separate seed, so the run is the same with and without a
    log, and the program of the loop is not slower.
    """

    def __init__(self, loop: training_loop.TrainingLoop) -> None:
        """Prepares the graph, which the first measurement with a batch traces.

        Args:
          loop: The loop that trains the agent.
        """
        self._loop = loop
        self._of_batch = tf.function(
            lambda: loop.agent.diagnose(loop.draw_for_log()), autograph=False
        )

    def measure(self) -> dict[str, float]:
        """Returns the numbers by name; before there is experience, fewer numbers."""
        if self._loop.can_draw_for_log():
            values = self._of_batch()
        else:
            values = self._loop.agent.diagnose()
        return {name: float(value) for name, value in values.items()}
