"""Tasks that run the same code on tfrl and on TF-Agents, which share these names.

It imports NumPy and TensorFlow only; a worker passes the objects of its own library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.workers import memory, serving

_IN_ONE_CALL = 100


def tutorial_loop(
    environment: Any,
    driver: Any,
    iterator: Any,
    agent: Any,
    function: Callable[..., Any],
    calls: str,
) -> serving.Task:
    """Makes the tutorial's loop in Python: collect a step, sample a batch, train.

    Args:
      environment: The environment of the driver.
      driver: The collecting driver.
      iterator: The iterator of the buffer's dataset.
      agent: The agent.
      function: The library's `common.function`.
      calls: "as written" has `train` under `common.function`, as in the tutorial; "two"
        has one function for the driver's `run`, and one for `next` and `train`, as in
        TF-Agents' examples; "one" makes one call per iteration.
    """
    policy_state = agent.collect_policy.get_initial_state(environment.batch_size)
    position = [environment.reset(), policy_state]

    def train() -> Any:
        experience, _ = next(iterator)
        return agent.train(experience).loss

    def collect_and_train(time_step: Any, policy_state: Any) -> Any:
        time_step, policy_state = driver.run(time_step, policy_state)
        return time_step, policy_state, train()

    if calls == "as written":
        train_compiled = function(agent.train)

        def iteration() -> Any:
            driver.run()
            experience, _ = next(iterator)
            return train_compiled(experience).loss

    elif calls == "two":
        collect, train_once = function(driver.run), function(train)

        def iteration() -> Any:
            position[:] = collect(*position)
            return train_once()

    else:
        step = function(collect_and_train)

        def iteration() -> Any:
            *position[:], loss = step(*position)
            return loss

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            loss = iteration()
        float(loss)
        return {
            "iterations": count,
            "environment steps": count * environment.batch_size,
        }

    return serving.Task(run)


def buffer_task(
    make_buffer: Callable[..., Any], what: str, capacity: int, image: bool
) -> serving.Task:
    """Makes one of a buffer's operations, on a full buffer.

    Args:
      make_buffer: The class; it takes `data_spec, batch_size, max_length`. Frames of a
        prioritized buffer get random priorities.
      what: "add" or "sample" makes one call per operation; "add, in a loop" and
        "sample, in a loop" repeat it in a loop in a graph; with ", compiled" XLA
        compiles that graph; "next" takes a batch from the buffer's dataset.
      capacity: The number of frames in the buffer.
      image: Whether frames are 84x84x4 bytes instead of transitions of CartPole.
    """
    buffer, facts = _full_buffer(make_buffer, capacity, image)
    frame = _frame(buffer.data_spec)

    def add() -> Any:
        buffer.add_batch(frame)
        return ()

    def sample() -> Any:
        items, info = buffer.get_next(64, 2)
        # Without its weights, part of a prioritized sample would be pruned.
        return items, getattr(info, "weights", ())

    def in_a_loop(operation: Callable[[], Any]) -> Any:
        # The loop carries the sample; otherwise TensorFlow would prune the sampling.
        _, last = tf.while_loop(
            lambda i, _: i < _IN_ONE_CALL,
            lambda i, _: (i + 1, operation()),
            (tf.constant(1), operation()),
        )
        return last

    if what == "next":
        iterator = iter(buffer.as_dataset(sample_batch_size=64, num_steps=2))
        return _repeated(lambda: next(iterator), 1, facts)
    name, *how = what.split(", ")
    operation = {"add": add, "sample": sample}[name]
    if how:
        call = tf.function(
            lambda: in_a_loop(operation), jit_compile="compiled" in how or None
        )
        return _repeated(call, _IN_ONE_CALL, facts)
    return _repeated(tf.function(operation), 1, facts)


@functools.cache
def _full_buffer(
    make_buffer: Callable[..., Any], capacity: int, image: bool
) -> tuple[Any, dict[str, Any]]:
    """Returns a buffer and its memory; all operations share one buffer."""
    spec = _image_spec() if image else _transition_spec()
    leaves = tf.nest.flatten(spec)
    raw = capacity * sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in leaves)
    make_buffer(data_spec=spec, batch_size=1, max_length=10)  # Starts TensorFlow.
    with memory.Watch() as watch:
        buffer = make_buffer(data_spec=spec, batch_size=1, max_length=capacity)
    # Marks all frames as written, with zeros in them: writing a million of them one by
    # one would take minutes.
    (head,) = (v for v in buffer.variables() if "last_id" in v.name)
    head.assign(capacity - 1)
    if getattr(buffer, "is_prioritized", False):
        priorities = np.random.default_rng(0).uniform(size=capacity)
        buffer.update_priorities(np.arange(capacity), priorities)
    return buffer, watch.facts(raw)


def _frame(spec: Any) -> Any:
    return tf.nest.map_structure(
        lambda leaf: tf.ones([1, *leaf.shape], leaf.dtype), spec
    )


def _transition_spec() -> dict[str, Any]:
    """Returns the spec of a frame of DQN on CartPole."""
    leaves = {
        "step_type": ((), tf.int32),
        "observation": ((4,), tf.float32),
        "action": ((), tf.int64),
        "next_step_type": ((), tf.int32),
        "reward": ((), tf.float32),
        "discount": ((), tf.float32),
    }
    return {name: tf.TensorSpec(*leaf, name=name) for name, leaf in leaves.items()}


def _image_spec() -> dict[str, Any]:
    return {"observation": tf.TensorSpec((84, 84, 4), tf.uint8, name="observation")}


def _repeated(call: Callable[[], Any], per_call: int, facts: Any) -> serving.Task:
    def run(count: int) -> dict[str, int]:
        calls = -(-count // per_call)
        for _ in range(calls):
            call()
        return {"operations": calls * per_call}

    return serving.Task(run, facts)
