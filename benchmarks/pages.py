"""Compares the pages of `examples.pages` with tfrl's loops.

    python -m benchmarks pages

Both have the page's settings, and each is one compiled program on native environments.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_LARGE = {"hidden_units": (256, 256), "batch_size": 256}


def groups() -> Iterator[Group]:
    """Yields a group for each page, and for large networks."""
    yield _group("dqn", "DQN, 8 environments", {})
    yield _group("dqn", "DQN, one environment", {"num_envs": 1})
    yield _group("sac", "SAC, two layers of 64, batches of 64", {})
    yield _group("sac", "SAC, two layers of 256, batches of 256", _LARGE)
    yield _group("ppo", "PPO, 8 environments, rollouts of 32 steps", {})
    rollouts = {"num_envs": 4, "rollout_steps": 128, "num_minibatches": 4}
    yield _group("ppo", "PPO, 4 environments, rollouts of 128 steps", rollouts)


def _group(name: str, title: str, settings: dict[str, Any]) -> Group:
    contenders = (
        Contender("the page", f"pages:{name}", f"{name}_page", settings),
        Contender("tfrl's loop", f"pages:{name}", f"{name}_loop", settings),
    )
    return Group(title, contenders, references=("tfrl's loop",))


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("pages", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["pages", *sys.argv[1:]]))
