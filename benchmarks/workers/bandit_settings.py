"""The settings that all contenders of the benchmark bandits have in common.

They are those of TF-Agents' train_eval_stationary_linear.py, with the noise of tfrl's
problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.workers import serving

SIZE, ARMS, BATCH, STEPS = 15, 5, 8, 2
ROUNDS = BATCH * STEPS  # Of an iteration.
DEVIATION = 0.1
ALPHA = 0.1
EPSILON = 0.05
LAYERS = (50, 50, 50)
LEARNING_RATE = 1e-3
# Arm a has the numbers from a on.
THETA = np.add.outer(np.arange(ARMS), np.arange(SIZE)).astype(np.float32)


class Regret:
    """An observer of frames that adds up the regret of their actions."""

    def __init__(self) -> None:
        """Starts at 0."""
        self._sum = tf.Variable(0.0, dtype=tf.float64)

    def __call__(self, frame: Any) -> None:
        """Adds the regrets of a frame `[B, ...]`."""
        expected = tf.matmul(frame.observation, THETA, transpose_b=True)
        chosen = tf.gather(expected, frame.action, batch_dims=1)
        regret = tf.reduce_max(expected, axis=1) - chosen
        self._sum.assign_add(tf.reduce_sum(tf.cast(regret, tf.float64)))

    def of_one(self) -> float:
        """Returns the sum of one member of the batch, on average."""
        return float(self._sum) / BATCH


def rounds_task(iterate: Callable[[int], object]) -> serving.Task:
    """Makes the task of playing rounds, from a function of a number of iterations."""

    def run(count: int) -> dict[str, int]:
        iterate(count)
        return {"rounds": count * ROUNDS}

    return serving.Task(run)


def regret_task(
    iterate: Callable[[int], object], regret: Regret, rounds: int
) -> serving.Task:
    """Plays rounds; returns a task whose facts have the regret."""
    iterate(rounds // ROUNDS)
    return serving.Task(lambda _: {}, {"regret": regret.of_one()})
