"""Measures how fast the emulators step Atari games: EnvPool and ale-py.

    python -m benchmarks atari

Pong with the preprocessing of `suite_atari.load_batch`, stepped from Python with random
actions. A frame is one of the console's; an action lasts for four. The seconds
are processor time, with the time of worker processes, whatever `--clock` says. Runs on
Linux.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sys
from collections.abc import Callable

import numpy as np

from benchmarks import command_line, report
from benchmarks.measurement import Session
from tfrl.environments import batched_py_environment, py_environment, suite_atari

_GAME = "PongNoFrameskip-v4"
_FRAMES = 4  # Of an action.
_Make = Callable[[], py_environment.PyEnvironment]


def makers(num_envs: int) -> dict[str, _Make]:
    """Returns functions that make a batch of `num_envs` games, by their labels."""
    load = functools.partial(suite_atari.load_batch, _GAME, num_envs)
    one_process = {
        f"ale-py, one process{', threads' if threads else ''}": functools.partial(
            _in_one_process, num_envs, threads
        )
        for threads in ((False, True) if num_envs > 1 else (False,))
    }
    processes = {"ale-py, processes": functools.partial(load, emulator="ale-py")}
    return {
        "EnvPool": functools.partial(load, emulator="envpool"),
        **one_process,
        **(processes if num_envs > 1 else {}),
    }


def run(session: Session) -> None:
    """Runs the benchmark."""
    for num_envs in (1, 8):
        environments = {label: make() for label, make in makers(num_envs).items()}
        rates: dict[str, list[float]] = {label: [] for label in environments}
        num_steps = (200 if session.quick else 1_600) // num_envs
        for environment in environments.values():
            environment.seed(0)
            environment.reset()
            frames_per_second(environment, num_steps)
        for _ in range(session.rounds):
            for label, environment in environments.items():
                rates[label].append(frames_per_second(environment, num_steps))
        for environment in environments.values():
            environment.close()
        session.add(
            report.Result(
                "atari",
                f"Pong, batch of {num_envs}",
                "frames/s of processor time",
                [report.Series(label, values) for label, values in rates.items()],
                references=("ale-py, one process",),
            )
        )


def frames_per_second(
    environment: py_environment.PyEnvironment, num_steps: int
) -> float:
    """Returns the frames of all members in a second of processor time."""
    spec, size = environment.action_spec(), environment.batch_size or 1
    actions = np.random.default_rng(0).integers(
        spec.minimum, spec.maximum + 1, (num_steps, size)
    )
    before = _processor_seconds()
    for action in actions:
        environment.step(action)
    return num_steps * size * _FRAMES / (_processor_seconds() - before)


def _in_one_process(num_envs: int, threads: bool) -> py_environment.PyEnvironment:
    return batched_py_environment.BatchedPyEnvironment(
        [
            suite_atari.load(
                _GAME,
                gym_env_wrappers=suite_atari.DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING,
            )
            for _ in range(num_envs)
        ],
        multithreading=threads,
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
