"""Compares many runs of DQN on native CartPole at once with one run.

    python -m benchmarks sweep [--cores=all]

The settings are as in `benchmarks.dqn`, with one environment and a buffer of 10,000
frames per run. No window includes compilation. The runs of a sweep are also evaluated
at the end of each window. On several cores, a sweep uses a thread for each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def groups(quick: bool) -> Iterator[Group]:
    """Yields one group, with a contender for each number of runs."""
    one = Contender("one run", "tfrl", "compiled", {"envs": 1, "capacity": 10_000})
    many = tuple(
        Contender(f"{runs} runs at once", "tfrl_threads", "sweep", {"runs": runs})
        for runs in ((32,) if quick else (8, 32, 128))
    )
    yield Group("sweep: iterations of all runs", (one, *many), references=(one.label,))


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("sweep", groups(session.quick))


if __name__ == "__main__":
    sys.exit(command_line.main(["sweep", *sys.argv[1:]]))
