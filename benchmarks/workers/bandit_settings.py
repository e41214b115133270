"""The settings that all contenders of the benchmark bandits have in common.

They are those of TF-Agents' train_eval_stationary_linear.py, with the noise of tfrl's
problem. The wheel's agents have these too, and the wheel and `alpha` are those of
train_eval_wheel.py.
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
# By the problem.
ALPHA = {"linear": 0.1, "wheel": 10.0}
EPSILON = 0.05
LAYERS = (50, 50, 50)
LEARNING_RATE = 1e-3
# Arm a has the numbers from a on.
THETA = np.add.outer(np.arange(ARMS), np.arange(SIZE)).astype(np.float32)
DELTA = 0.8
MU_BASE, STD_BASE = (1.2, 1.0, 1.0, 1.0, 1.0), (0.01,) * 5
MU_HIGH, STD_HIGH = 50.0, 0.01


def _linear_means(context: tf.Tensor) -> tf.Tensor:
    return tf.matmul(context, THETA, transpose_b=True)


def _wheel_means(context: tf.Tensor) -> tf.Tensor:
    x, y = tf.unstack(context, axis=1)
    best = 1 + 2 * tf.cast(x < 0, tf.int32) + tf.cast(y < 0, tf.int32)
    is_outside = tf.norm(context, axis=1, keepdims=True) > DELTA
    is_high = is_outside & tf.cast(tf.one_hot(best, ARMS), tf.bool)
    return tf.where(is_high, MU_HIGH, MU_BASE)


_MEANS = {"linear": _linear_means, "wheel": _wheel_means}


class Regret:
    """An observer of frames that adds up the regret of their actions."""

    def __init__(self, problem: str = "linear") -> None:
        """Starts at 0."""
        self._sum = tf.Variable(0.0, dtype=tf.float64)
        self._means = _MEANS[problem]

    def __call__(self, frame: Any) -> None:
        """Adds the regrets of a frame `[B, ...]`."""
        expected = self._means(frame.observation)
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
