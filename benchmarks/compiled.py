"""Compares the compiled DQN loop on native CartPole with a JAX loop in `lax.scan`.

    python -m benchmarks compiled

The settings are as in `benchmarks.dqn`; each environment steps once per iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def groups(quick: bool) -> Iterator[Group]:
    """Yields a group for each number of environments, and one of buffer capacities."""
    for envs in (1, 128) if quick else (1, 8, 64, 128, 1024, 4096):
        contenders = [
            Contender("tfrl", "tfrl", "compiled", {"envs": envs, "capacity": 100_000}),
            Contender("JAX", "jax", "dqn", {"envs": envs}),
        ]
        if envs == 1:
            contenders.append(Contender("TF-Agents", "tf_agents", "dqn", {"envs": 1}))
        yield Group(
            f"compiled DQN, {envs:,} native environment{'s' * (envs > 1)}",
            tuple(contenders),
            references=("JAX", "TF-Agents"),
        )
    capacities = (100_000, 1_000_000) if quick else (10_000, 100_000, 1_000_000)
    contenders = [
        Contender(
            f"tfrl, {capacity:,} frames",
            "tfrl",
            "compiled",
            {"envs": 1, "capacity": capacity},
        )
        for capacity in capacities
    ]
    yield Group(
        "compiled DQN, by the buffer's capacity",
        tuple(contenders),
        references=(contenders[0].label,),
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("compiled", groups(session.quick))


if __name__ == "__main__":
    sys.exit(command_line.main(["compiled", *sys.argv[1:]]))
