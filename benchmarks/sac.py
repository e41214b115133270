"""Compares SAC on Pendulum with its peers.

    python -m benchmarks sac

The settings are in `benchmarks/workers/pendulum_settings.py`, the contenders in
`benchmarks/pendulum.py`. Peers step Gymnasium's environment (TF-Agents steps Gym's,
from which it comes); tfrl steps this or its own.
"""

from __future__ import annotations

import sys

from benchmarks import command_line, pendulum
from benchmarks.measurement import Session


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("sac", pendulum.groups("sac"))


if __name__ == "__main__":
    sys.exit(command_line.main(["sac", *sys.argv[1:]]))
