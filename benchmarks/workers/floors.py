"""Lower bounds of a loop's time: each of its parts alone, in its fastest form."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

import examples  # noqa: F401  Sets up TensorFlow as for tfrl.
from benchmarks.workers import memory, serving, update_products


def gymnasium_step(envs: int = 1) -> serving.Task:
    """Makes steps of CartPole alone, in Python."""
    members = [gymnasium.make("CartPole-v1").unwrapped for _ in range(envs)]
    for member in members:
        member.reset(seed=0)

    def step() -> None:
        for member in members:
            if member.step(0)[2]:
                member.reset()

    return _repeated(step)


def numpy_function() -> serving.Task:
    """Makes calls from a loop in a graph to Python and back."""
    nothing = np.zeros(4, np.float32)

    @tf.function
    def loop(count: tf.Tensor) -> tf.Tensor:
        return tf.while_loop(
            lambda i, _: i < count,
            lambda i, x: (i + 1, tf.numpy_function(lambda _: nothing, [x], tf.float32)),
            (tf.constant(0), tf.zeros(4)),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape(None)),
        )

    def run(count: int) -> dict[str, int]:
        loop(tf.constant(count))
        return {"iterations": count}

    return serving.Task(run)


def function_call() -> serving.Task:
    """Makes calls of a `tf.function` of one tensor from Python."""
    call, one = tf.function(lambda x: x + 1), tf.constant(1)
    return _repeated(lambda: call(one))


def matrix_products() -> serving.Task:
    """Makes an iteration of DQN in NumPy: act, both networks' values, gradients."""
    rng = np.random.default_rng(0)
    one, batch, hidden, out, gradient = (
        rng.standard_normal(shape, np.float32)
        for shape in ((1, 4), (64, 4), (4, 100), (100, 2), (64, 2))
    )

    def iteration() -> None:
        (one @ hidden) @ out
        (batch @ hidden) @ out
        activations = batch @ hidden
        activations @ out
        activations.T @ gradient
        batch.T @ (gradient @ out.T)

    return _repeated(iteration)


def numpy_images(what: str, capacity: int) -> serving.Task:
    """Makes NumPy's indexing of 84x84x4 bytes: a row written, or 64 pairs read."""
    frames, facts = _images(capacity)
    frame = np.ones((84, 84, 4), np.uint8)
    rng = np.random.default_rng(0)
    row = 0

    def add() -> None:
        nonlocal row
        frames[row] = frame
        row = (row + 1) % capacity

    def sample() -> Any:
        return frames[rng.integers(0, capacity - 1, (64, 1)) + np.arange(2)]

    task = _repeated({"add": add, "sample": sample}[what])
    return task._replace(facts=facts)


@functools.cache
def _images(capacity: int) -> tuple[Any, dict[str, Any]]:
    with memory.Watch() as watch:
        frames = np.ones((capacity, 84, 84, 4), np.uint8)
    return frames, watch.facts(frames.nbytes)


def _repeated(call: Callable[[], Any]) -> serving.Task:
    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            call()
        return {"iterations": count, "operations": count}

    return serving.Task(run)


if __name__ == "__main__":
    serving.serve(
        {
            "gymnasium_step": gymnasium_step,
            "numpy_function": numpy_function,
            "function_call": function_call,
            "matrix_products": matrix_products,
            "update": update_products.update,
            "numpy_images": numpy_images,
        },
        ["tensorflow", "gymnasium", "numpy"],
        {"oneDNN": os.environ["TF_ENABLE_ONEDNN_OPTS"]},
    )
