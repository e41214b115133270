"""The compiled DQN loop on native CartPole, beside a JAX loop of one `lax.scan`.

    python -m benchmarks compiled

The settings are those of `benchmarks.dqn`; all environments step once an iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def groups(quick: bool) -> Iterator[Group]:
    """A group for each number of environments, and one of capacities."""
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
    """Measures it."""
    session.measure("compiled", groups(session.quick))


if __name__ == "__main__":
    sys.exit(command_line.main(["compiled", *sys.argv[1:]]))
