"""Many runs of DQN on native CartPole at once, beside one run after another.

    python -m benchmarks sweep

The settings are those of `benchmarks.dqn`, with one environment and a buffer of 10,000
frames a run; compilation is left out on both sides. The runs at once are evaluated,
too, at the end of each window.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def groups(quick: bool) -> Iterator[Group]:
    """One group, of numbers of runs."""
    one = Contender("one run", "tfrl", "compiled", {"envs": 1, "capacity": 10_000})
    many = tuple(
        Contender(f"{runs} runs at once", "tfrl", "sweep", {"runs": runs})
        for runs in ((32,) if quick else (8, 32, 128))
    )
    yield Group("sweep: iterations of all runs", (one, *many), references=(one.label,))


def run(session: Session) -> None:
    """Measures it."""
    session.measure("sweep", groups(session.quick))


if __name__ == "__main__":
    sys.exit(command_line.main(["sweep", *sys.argv[1:]]))
