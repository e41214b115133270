"""Measures an agent for the log of its run, separately from training."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrl.compilation import trace_counts
from tfrl.train.loops import training_loop


class Diagnostics:
    """Computes the numbers of `TFAgent.diagnose` on a batch of the loop's experience.

    The batch is drawn with a separate seed, so the run is the same with and without a
    log, and the program of the loop is not slower.

    For each group of weights in `TFAgent.weights_by_name` there are two more numbers:
    its norm, such as `weights_norm`, and the mean change of an update since the last
    measurement as a share of this norm, such as `weights_change`.
    """

    def __init__(self, loop: training_loop.TrainingLoop) -> None:
        """Prepares the graphs, which the first measurements trace.

        Args:
          loop: The loop that trains the agent.
        """
        self._loop = loop
        self._names: dict[bool, list[str]] = {}
        self._graph = tf.function(
            trace_counts.of_one_object(self._measured), autograph=False
        )
        self._before: dict[str, np.ndarray] = {}
        self._updates_before = 0

    def measure(self) -> dict[str, float]:
        """Returns the numbers by name; before there is experience, fewer numbers."""
        has_batch = self._loop.can_draw_for_log()
        values, weights = self._graph(has_batch)
        numbers = dict(
            zip(self._names[has_batch], values.numpy().tolist(), strict=True)
        )
        num_updates = int(tf.convert_to_tensor(self._loop.agent.train_step_counter))
        since = num_updates - self._updates_before
        for name, tensor in weights.items():
            now = tensor.numpy()
            numbers[f"{name}_norm"] = norm = float(np.linalg.norm(now))
            before = self._before.get(name)
            if before is not None and since > 0 and norm > 0:
                moved = float(np.linalg.norm(now - before))
                numbers[f"{name}_change"] = moved / norm / since
            self._before[name] = now
        self._updates_before = num_updates
        return numbers

    def _measured(self, has_batch: bool) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Returns the agent's numbers, `[N]`, and its weights, each `[M]`."""
        agent = self._loop.agent
        values = agent.diagnose(self._loop.draw_for_log() if has_batch else None)
        self._names[has_batch] = list(values)
        numbers = [tf.cast(value, tf.float64) for value in values.values()]
        return (
            tf.stack(numbers) if numbers else tf.zeros([0], tf.float64),
            {
                name: tf.concat(
                    [tf.reshape(tf.cast(v, tf.float32), [-1]) for v in weights], 0
                )
                for name, weights in agent.weights_by_name().items()
                if weights
            },
        )
