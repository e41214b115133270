"""Measures what a step of EnvPool costs: alone, from Python, and in a compiled loop.

    python -m benchmarks envpool

A step is one of all members, with the same random actions each time; the pool has one
thread. There are two tables, whatever `--clock` says: by the clock, and by processor
time, with that of the pool's thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import command_line, report
from benchmarks.measurement import Session
from tfrl.environments import TFPyEnvironment, suite_envpool
from tfrl.specs import array_spec

# The tasks, and about how many microseconds a step of one member takes.
_TASKS = (("CartPole-v1", 2), ("HalfCheetah-v4", 40), ("Pong-v5", 500))
_MEMBERS = (1, 8, 64)
_CALL = 100  # About the microseconds of a step without its members.
_ALONE = "EnvPool alone"
_Walk = Callable[[int], Any]


def walks(task: str, members: int) -> dict[str, _Walk]:
    """Returns functions that take a number of steps, by their labels.

    Args:
      task: EnvPool's name of the task.
      members: The number of members.
    """
    import envpool

    first, second = (_load(task, members) for _ in range(2))
    pool = envpool.make_gymnasium(task, num_envs=members, num_threads=1, seed=0)
    pool.reset()
    action = array_spec.sample_spec_nest(
        first.action_spec(), np.random.default_rng(0), outer_dims=(members,)
    )
    environment = TFPyEnvironment(second)
    environment.reset()

    @tf.function(jit_compile=True, autograph=False)
    def compiled(count: tf.Tensor) -> tf.Tensor:
        def body(i: tf.Tensor, total: tf.Tensor) -> Any:
            reward = environment.step(tf.constant(action)).reward
            return i + 1, total + tf.reduce_sum(reward)

        return tf.while_loop(lambda i, _: i < count, body, (0, 0.0))[1]

    def in_program(count: int) -> None:
        with environment.reraise():
            compiled(tf.constant(count)).numpy()

    return {
        _ALONE: lambda count: [pool.step(action) for _ in range(count)],
        "Python": lambda count: [first.step(action) for _ in range(count)],
        "compiled loop": in_program,
    }


def run(session: Session) -> None:
    """Runs the benchmark."""
    for task, microseconds in _TASKS:
        for members in _MEMBERS[: 1 if session.quick else None]:
            found = walks(task, members)
            count = int(1e6 * session.seconds / (_CALL + microseconds * members)) + 1
            values: dict[str, list[tuple[float, float]]] = {x: [] for x in found}
            for walk in found.values():
                walk(2)
            for _ in range(session.rounds):
                for label, walk in found.items():
                    values[label].append(microseconds_of(walk, count))
            for index, clock in enumerate(("by the clock", "of processor time")):
                series = [
                    report.Series(label, [pair[index] for pair in pairs])
                    for label, pairs in values.items()
                ]
                session.add(
                    report.Result(
                        "envpool",
                        f"a step of {members} of {task}",
                        f"microseconds {clock}",
                        series,
                        references=(_ALONE,),
                        less_is_better=True,
                    )
                )


def microseconds_of(walk: _Walk, count: int) -> tuple[float, float]:
    """Returns the microseconds of a step by the clock, and those of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    walk(count)
    passed = time.perf_counter() - wall, time.process_time() - processor
    return passed[0] / count * 1e6, passed[1] / count * 1e6


def _load(task: str, members: int) -> Any:
    environment = suite_envpool.load(task, members, envpool_kwargs={"num_threads": 1})
    environment.seed(0)
    environment.reset()
    return environment


if __name__ == "__main__":
    sys.exit(command_line.main(["envpool", *sys.argv[1:]]))
