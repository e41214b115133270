"""Compares the cost of an action for an observation with Stable-Baselines3.

    python -m benchmarks predict --clock=cpu

This is what a loop pays that a user writes by hand. The networks have two layers; those
of SAC have 256 units, the others 64. All policies are greedy and untrained.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

# The algorithms, their environments and the units of their layers.
ALGORITHMS = (
    ("PPO", "CartPole-v1", 64),
    ("DQN", "CartPole-v1", 64),
    ("SAC", "Pendulum-v1", 256),
)
SIZES = (1, 20)
_WAYS = {
    "class": "tfrl, predict of the class",
    "action": "tfrl, agent.policy.action of arrays",
    "loaded": "tfrl, predict of policy_loader.load",
}


def groups() -> Iterator[Group]:
    """Yields the groups of contenders."""
    for algorithm, environment, units in ALGORITHMS:
        for size in SIZES:
            settings = {
                "algorithm": algorithm,
                "environment": environment,
                "units": units,
                "observations": size,
            }
            ours = (
                Contender(label, "tfrl", "predict", {**settings, "way": way})
                for way, label in _WAYS.items()
            )
            peer = Contender("Stable-Baselines3, predict", "torch", "predict", settings)
            number = "one observation" if size == 1 else f"{size} observations"
            yield Group(
                f"Actions of {algorithm} for {number}",
                (*ours, peer),
                references=(peer.label,),
                units=("calls",),
            )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("predict", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["predict", *sys.argv[1:]]))
