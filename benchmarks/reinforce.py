"""Compares REINFORCE on CartPole-v0 with TF-Agents' tutorial.

    python -m benchmarks reinforce

An iteration collects two episodes. Episodes grow longer as the policies learn, so all
contenders do the same number of iterations in a window, and an iteration is more work
in later rounds.
"""

from __future__ import annotations

import sys

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def group(count: int) -> Group:
    """Returns the contenders, each of which does `count` iterations in a window."""
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
    """Runs the benchmark."""
    count = 6 if session.quick else 12
    if session.against:  # Both checkouts learn the same: windows may be longer.
        count *= 10
    session.measure("reinforce", [group(count)])


if __name__ == "__main__":
    sys.exit(command_line.main(["reinforce", *sys.argv[1:]]))
