"""Compares PQN on CartPole with CleanRL's loop.

    python -m benchmarks pqn

The settings are in `benchmarks/workers/pqn_settings.py`. An iteration is a rollout and
its updates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def groups() -> Iterator[Group]:
    """Yields the group of contenders."""
    settings = {"envs": 8, "steps": 128}
    gymnasium = {**settings, "native": False}
    peer = Contender("CleanRL's loop", "torch", "cleanrl_pqn", settings)
    yield Group(
        "PQN on 8 CartPoles of Gymnasium, rollouts of 128 steps",
        (
            Contender("tfrl", "tfrl:pqn", "pqn", {**gymnasium, "jit_compile": False}),
            Contender(
                "tfrl, compiled", "tfrl:pqn", "pqn", {**gymnasium, "jit_compile": True}
            ),
            Contender(
                "tfrl, compiled, native",
                "tfrl:pqn",
                "pqn",
                {**settings, "native": True, "jit_compile": True},
            ),
            peer,
        ),
        references=(peer.label,),
        units=("environment steps",),
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("pqn", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["pqn", *sys.argv[1:]]))
