"""REINFORCE on CartPole-v0, two episodes an iteration, beside TF-Agents' tutorial.

    python -m benchmarks reinforce

Episodes grow longer as the policies learn, so that all do the same number of
iterations in a window, and an iteration is not the same work in all rounds.
"""

from __future__ import annotations

import sys

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def group(count: int) -> Group:
    """The contenders, each doing `count` iterations in a window."""
    return Group(
        "REINFORCE, two episodes an iteration",
        (
            Contender("tfrl", "tfrl", "reinforce"),
            Contender("tfrl, compiled", "tfrl", "reinforce", {"jit_compile": True}),
            Contender(
                "tfrl, native and compiled",
                "tfrl",
                "reinforce",
                {"native": True, "jit_compile": True},
            ),
            Contender(
                "TF-Agents, as written",
                "tf_agents",
                "reinforce",
                {"policy": "as written"},
            ),
            Contender(
                "TF-Agents, policy kept", "tf_agents", "reinforce", {"policy": "kept"}
            ),
        ),
        references=("TF-Agents, as written", "TF-Agents, policy kept"),
        units=("iterations", "environment steps"),
        count=count,
    )


def run(session: Session) -> None:
    """Measures it."""
    count = 6 if session.quick else 12
    if session.against:  # Whose loops learn the same, so that windows may be longer.
        count *= 10
    session.measure("reinforce", [group(count)])


if __name__ == "__main__":
    sys.exit(command_line.main(["reinforce", *sys.argv[1:]]))
