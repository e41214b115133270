"""Measures an agent for the log of its run, apart from training."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrl.train.loops import training_loop


class Diagnostics:
    """Computes the numbers of `TFAgent.diagnose` on a batch of the loop's experience.

    The batch is drawn with a separate seed, so the run is the same with and without a
    log, and the program of the loop is not slower.

    For each group of weights in `TFAgent.weights_by_name` there are two numbers more:
    its norm, such as `weights_norm`, and the mean change of an update since the last
    measurement as a share of this norm, such as `weights_change`.
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
        self._before: dict[str, np.ndarray] = {}
        self._updates_before = 0

    def measure(self) -> dict[str, float]:
        """Returns the numbers by name; before there is experience, fewer numbers."""
        if self._loop.can_draw_for_log():
            values = self._of_batch()
        else:
            values = self._loop.agent.diagnose()
        numbers = {name: float(value) for name, value in values.items()}
        return numbers | self._measure_weights()

    def _measure_weights(self) -> dict[str, float]:
        agent = self._loop.agent
        num_updates = int(tf.convert_to_tensor(agent.train_step_counter))
        since = num_updates - self._updates_before
        numbers = {}
        for name, weights in agent.weights_by_name().items():
            if not weights:
                continue
            now = np.concatenate(
                [np.ravel(tf.convert_to_tensor(v).numpy()) for v in weights]
            ).astype(np.float32)
            numbers[f"{name}_norm"] = norm = float(np.linalg.norm(now))
            before = self._before.get(name)
            if before is not None and since > 0 and norm > 0:
                moved = float(np.linalg.norm(now - before))
                numbers[f"{name}_change"] = moved / norm / since
            self._before[name] = now
        self._updates_before = num_updates
        return numbers
