"""Measures an agent for the log of its runs, separately from training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfrl import garbage
from tfrl.compilation import trace_counts

if TYPE_CHECKING:
    from tfrl.agents import tf_agent
    from tfrl.typing import types


class Diagnostics:
    """Computes the numbers of `TFAgent.diagnose` on a batch of the loop's experience.

    The batch is drawn with a separate seed, so the run is the same with and without a
    log, and the program of the loop is not slower.

    For each group of weights in `TFAgent.weights_by_name` there are two more numbers:
    its norm, such as `weights_norm`, and the mean change of an update since the last
    measurement as a share of this norm, such as `weights_change`.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        can_draw: Callable[[], bool],
        draw: Callable[[], types.NestedTensor | None],
    ) -> None:
        """Prepares the graphs, which the first measurements trace.

        Args:
          agent: The agent.
          can_draw: Whether there is experience to draw.
          draw: Draws a batch of it, in a graph.
        """
        self._agent = agent
        self._can_draw = can_draw
        self._draw = draw
        self._names: dict[bool, list[str]] = {}
        self._numbers = tf.function(
            trace_counts.of_one_object(self._measured), autograph=False
        )
        self._weights = tf.function(
            trace_counts.of_one_object(self._joined_weights), autograph=False
        )
        self._before: dict[str, np.ndarray] = {}
        self._updates_before = 0

    @garbage.uncollected()
    def begin(self) -> None:
        """Notes the weights, from which the first measurement tells their change."""
        self._before = {name: x.numpy() for name, x in self._weights().items()}
        self._updates_before = self._num_updates()

    @garbage.uncollected()
    def measure(self) -> dict[str, float]:
        """Returns the numbers by name.

        There are fewer before there is experience. A number that is NaN is not defined
        now, and is left out.
        """
        has_batch = self._can_draw()
        values = self._numbers(has_batch).numpy().tolist()
        named = zip(self._names[has_batch], values, strict=True)
        numbers = {name: x for name, x in named if not math.isnan(x)}
        before, updates_before = self._before, self._updates_before
        self.begin()
        since = self._updates_before - updates_before
        for name, now in self._before.items():
            numbers[f"{name}_norm"] = norm = float(np.linalg.norm(now))
            if name in before and since > 0 and norm > 0:
                moved = float(np.linalg.norm(now - before[name]))
                numbers[f"{name}_change"] = moved / norm / since
        return numbers

    def _num_updates(self) -> int:
        return int(tf.convert_to_tensor(self._agent.train_step_counter))

    def _measured(self, has_batch: bool) -> tf.Tensor:
        """Returns the agent's numbers, `[N]`."""
        values = self._agent.diagnose(self._draw() if has_batch else None)
        self._names[has_batch] = list(values)
        numbers = [tf.cast(value, tf.float64) for value in values.values()]
        return tf.stack(numbers) if numbers else tf.zeros([0], tf.float64)

    def _joined_weights(self) -> dict[str, tf.Tensor]:
        """Returns the weights of each group, each `[M]`."""
        return {
            name: tf.concat(
                [tf.reshape(tf.cast(v, tf.float32), [-1]) for v in weights], 0
            )
            for name, weights in self._agent.weights_by_name().items()
            if weights
        }
