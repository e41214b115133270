"""Lower bounds of a loop's time: each of its parts alone, in its fastest form."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

import examples  # noqa: F401  Sets up TensorFlow as for tfrl.
from benchmarks.workers import (
    dreamer_products,
    memory,
    pqn_settings,
    serving,
    update_products,
)


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


def gymnasium_vector_step(envs: int) -> serving.Task:
    """Makes steps of CartPole's own vector environment alone, in NumPy."""
    members = gymnasium.make_vec(
        "CartPole-v1", envs, vectorization_mode="vector_entry_point"
    )
    members.reset(seed=0)
    actions = np.arange(envs) % 2

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            members.step(actions)
        return {"iterations": count, "environment steps": count * envs}

    return serving.Task(run)


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


def pqn_products(envs: int, steps: int) -> serving.Task:
    """Makes an iteration of PQN in NumPy: act, and the gradients of each minibatch."""
    rng = np.random.default_rng(0)
    sizes = (4, *pqn_settings.UNITS, 2)
    kernels = [
        rng.standard_normal(shape, np.float32) for shape in itertools.pairwise(sizes)
    ]
    rows = envs * steps // pqn_settings.MINIBATCHES
    acting, batch, errors = (
        rng.standard_normal(shape, np.float32)
        for shape in ((envs, 4), (rows, 4), (rows, 2))
    )

    def forward(x: Any) -> list[Any]:
        activations = [x]
        for kernel in kernels:
            activations.append(activations[-1] @ kernel)
        return activations

    def update() -> None:
        *activations, _ = forward(batch)
        gradient = errors
        for kernel, x in reversed(list(zip(kernels, activations, strict=True))):
            x.T @ gradient
            if x is not batch:
                gradient = gradient @ kernel.T

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            for _ in range(steps):
                forward(acting)
            for _ in range(pqn_settings.EPOCHS * pqn_settings.MINIBATCHES):
                update()
        return {"iterations": count, "environment steps": count * envs * steps}

    return serving.Task(run)


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
            "gymnasium_vector_step": gymnasium_vector_step,
            "numpy_function": numpy_function,
            "function_call": function_call,
            "matrix_products": matrix_products,
            "pqn_products": pqn_products,
            "update": update_products.update,
            "dreamer_products": dreamer_products.dreamer_products,
            "numpy_images": numpy_images,
        },
        ["tensorflow", "gymnasium", "numpy"],
        {"oneDNN": os.environ["TF_ENABLE_ONEDNN_OPTS"]},
    )
