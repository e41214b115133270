"""Measures how fast several Atari games are stepped: on threads and in processes.

    python -m benchmarks atari

Pong with the preprocessing of `suite_atari.load_batch`, stepped from Python with random
actions; EnvPool and ale-py's `AtariVectorEnv` by themselves are beside it. A step is a
game's, and lasts for four frames of the console. There are two rates, whatever
`--clock` says: by the clock, and by processor time, with that of worker processes. Runs
on Linux.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import command_line, report
from benchmarks.measurement import Session
from tfrl.environments import (
    batched_py_environment,
    py_environment,
    suite_atari,
    suite_envpool,
)

_GAME = "PongNoFrameskip-v4"
_Make = Callable[[], Any]


def makers(num_envs: int) -> dict[str, _Make]:
    """Returns functions that make a batch of `num_envs` games, by their labels."""
    load = functools.partial(suite_atari.load_batch, _GAME, num_envs)
    return {
        "threads (ale-py)": load,
        "processes (gymnasium)": functools.partial(load, emulator="gymnasium"),
        "one process": functools.partial(_in_one_process, num_envs),
        "EnvPool": functools.partial(suite_envpool.load, "Pong-v5", num_envs),
        "AtariVectorEnv alone": functools.partial(_Alone, num_envs),
    }


def run(session: Session) -> None:
    """Runs the benchmark."""
    for num_envs in (8, 32):
        environments = {label: make() for label, make in makers(num_envs).items()}
        rates: dict[str, list[tuple[float, float]]] = {x: [] for x in environments}
        num_steps = (200 if session.quick else 1_600) // num_envs
        for environment in environments.values():
            environment.seed(0)
            environment.reset()
            steps_per_second(environment, num_steps)
        for _ in range(session.rounds):
            for label, environment in environments.items():
                rates[label].append(steps_per_second(environment, num_steps))
        for environment in environments.values():
            environment.close()
        for index, unit in enumerate(("steps/s", "steps/s of processor time")):
            session.add(
                report.Result(
                    "atari",
                    f"Pong, batch of {num_envs}",
                    unit,
                    [
                        report.Series(label, [rate[index] for rate in values])
                        for label, values in rates.items()
                    ],
                    references=("processes (gymnasium)", "EnvPool"),
                )
            )


def steps_per_second(environment: Any, num_steps: int) -> tuple[float, float]:
    """Returns the steps of all members in a second, and in one of processor time."""
    spec, size = environment.action_spec(), environment.batch_size
    actions = np.random.default_rng(0).integers(
        spec.minimum, spec.maximum + 1, (num_steps, size)
    )
    before = np.array([time.perf_counter(), _processor_seconds()])
    for action in actions:
        environment.step(action)
    now = np.array([time.perf_counter(), _processor_seconds()])
    by_clock, by_processor = num_steps * size / (now - before)
    return float(by_clock), float(by_processor)


class _Alone:
    """ale-py's vector environment, with the interface that is measured."""

    def __init__(self, num_envs: int) -> None:
        from ale_py import vector_env

        self.batch_size = num_envs
        self._env = vector_env.AtariVectorEnv("pong", num_envs)
        self._spec = suite_atari.load(_GAME).action_spec()

    def seed(self, seed: int) -> None:
        self._seed = seed

    def reset(self) -> None:
        self._env.reset(seed=self._seed)

    def action_spec(self) -> Any:
        return self._spec

    def step(self, action: np.ndarray) -> None:
        self._env.step(action)

    def close(self) -> None:
        self._env.close()


def _in_one_process(num_envs: int) -> py_environment.PyEnvironment:
    return batched_py_environment.BatchedPyEnvironment(
        [
            suite_atari.load(
                _GAME,
                gym_env_wrappers=suite_atari.DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING,
            )
            for _ in range(num_envs)
        ],
        multithreading=False,
    )


def _processor_seconds() -> float:
    """Returns the processor time of this process and of its descendants."""
    ticks, processes = 0, [os.getpid()]
    while processes:
        process = pathlib.Path("/proc", str(processes.pop()))
        # The name in brackets may contain spaces.
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
        for children in process.glob("task/*/children"):
            processes += map(int, children.read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(command_line.main(["atari", *sys.argv[1:]]))
