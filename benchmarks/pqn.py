"""Compares PQN on CartPole with its peers and the floors.

    python -m benchmarks pqn

The settings are in `benchmarks/workers/pqn_settings.py`. On native environments, tfrl
and the loop that purejaxql writes on gymnax are one compiled program each. On eight
environments of Gymnasium, tfrl and CleanRL's loop call Python. An iteration is a
rollout and its updates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

SIZES = ((8, 128), (128, 128))  # Environments, and steps of a rollout.


def groups() -> Iterator[Group]:
    """Yields the groups of contenders."""
    for envs, steps in SIZES:
        settings = {"envs": envs, "steps": steps}
        native = {**settings, "native": True, "jit_compile": True}
        yield Group(
            f"PQN on native CartPole, {envs} environments, rollouts of {steps} steps",
            (
                Contender("tfrl, compiled", "tfrl:pqn", "pqn", native),
                Contender("JAX", "jax", "pqn", settings),
            ),
            references=("JAX",),
            units=("environment steps",),
        )
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
            peer,
            Contender(
                "Gymnasium's steps alone",
                "floors",
                "gymnasium_vector_step",
                {"envs": 8},
            ),
            Contender(
                "matrix products alone, in NumPy", "floors", "pqn_products", settings
            ),
        ),
        references=(peer.label,),
        units=("environment steps",),
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("pqn", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["pqn", *sys.argv[1:]]))
