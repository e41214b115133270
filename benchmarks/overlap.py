"""Compares the ways to train on several cores: threads of operations, and overlap.

    python -m benchmarks overlap

Two cores are needed. XLA divides large operations among its threads. With overlap, the
environment steps beside the updates: the time of an iteration that takes turns is that
of its step and of its updates; with overlap it cannot be less than the longer of them.
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
_GAMES = {"environment": "ALE/Breakout-v5", "num_envs": 8}
_PRESETS: dict[str, dict[str, Any]] = {
    "TD3 on HalfCheetah, layers of 256 and batches of 256": {
        "algorithm": "td3",
        "environment": "HalfCheetah-v5",
        "initial_collect_steps": 500,
    },
    "PPO on HalfCheetah, eight members, layers of 64": {
        "algorithm": "ppo",
        "environment": "HalfCheetah-v5",
        "num_envs": 8,
    },
    "PPO on eight games of Breakout": {"algorithm": "ppo", **_GAMES},
    "DQN on eight games of Breakout": {
        "algorithm": "dqn",
        **_GAMES,
        "initial_collect_steps": 400,
        "replay_capacity": 5_000,
    },
}


def groups() -> Iterator[Group]:
    """Yields a group for each problem."""
    for title, settings in _PROBLEMS.items():
        apart, beside = ({**settings, "overlap": x} for x in (False, True))
        yield Group(
            title,
            (
                Contender("one thread", "tfrl", "overlap", apart),
                Contender("overlapping", "tfrl", "overlap", beside),
                Contender("all threads", "tfrl_threads", "overlap", apart),
                Contender("both", "tfrl_threads", "overlap", beside),
                Contender("steps alone", "tfrl", "steps", _steps(settings)),
                Contender(
                    "Stable-Baselines3", "torch_threads", "actor_critic", settings
                ),
            ),
            references=("one thread", "Stable-Baselines3"),
        )
    for title, settings in _PRESETS.items():
        yield Group(
            title,
            (
                Contender("one thread", "tfrl", "by_preset", settings),
                Contender("all threads", "tfrl_threads", "by_preset", settings),
            ),
            references=("one thread",),
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
