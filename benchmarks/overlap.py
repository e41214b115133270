"""Compares steps that run beside the updates with steps that take turns with them.

    python -m benchmarks overlap

Two cores are needed. The time of an iteration that takes turns is that of its step and
of its updates; with overlap it cannot be less than the longer of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_PROBLEMS: dict[str, dict[str, Any]] = {
    "SAC on HalfCheetah, layers and batches of 256": {
        "algorithm": "sac",
        "environment": "HalfCheetah-v5",
        "units": 256,
        "batch": 256,
    },
    "SAC on Hopper, layers of 64 and batches of 256": {
        "algorithm": "sac",
        "environment": "Hopper-v5",
        "units": 64,
        "batch": 256,
    },
    "SAC on Pendulum with a step of 1 ms more, layers and batches of 64": {
        "algorithm": "sac",
        "environment": "Pendulum-v1",
        "units": 64,
        "batch": 64,
        "waits": 0.001,
    },
}


def groups() -> Iterator[Group]:
    """Yields a group for each problem."""
    for title, settings in _PROBLEMS.items():
        yield Group(
            title,
            (
                Contender("in turn", "tfrl", "overlap", {**settings, "overlap": False}),
                Contender(
                    "overlapping", "tfrl", "overlap", {**settings, "overlap": True}
                ),
                Contender("steps alone", "tfrl", "steps", _steps(settings)),
                Contender("Stable-Baselines3", "torch", "actor_critic", settings),
            ),
            references=("in turn", "Stable-Baselines3"),
        )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("overlap", groups())


def _steps(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: settings[name] for name in ("environment", "waits") if name in settings
    }


if __name__ == "__main__":
    sys.exit(command_line.main(["overlap", *sys.argv[1:]]))
