"""Compares the fused DQN loop on Gymnasium's CartPole with the peers and the floors.

    python -m benchmarks dqn

One hidden layer of 100 units, batches of 64, Adam with 1e-3, a buffer of 100,000
frames; an iteration is one step of each environment and one update. tfrl samples from
the buffer's variables in the loop, or from its `as_dataset` pipeline, or XLA compiles
the whole loop. The agents that predict distributions of the return have 51 atoms, or 50
quantiles.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session


def _ours(envs: int) -> tuple[Contender, ...]:
    forms: dict[str, dict[str, Any]] = {
        "variables": {"sampling": "variables"},
        "as_dataset": {"sampling": "dataset"},
        "jit_compile": {"jit_compile": True},
    }
    return tuple(
        Contender(f"tfrl, {form}", "tfrl", "dqn", {"envs": envs, **options})
        for form, options in forms.items()
    )


ONE = Group(
    "DQN, one Gymnasium environment",
    (
        *_ours(1),
        Contender("TF-Agents", "tf_agents", "dqn", {"envs": 1}),
        Contender("Stable-Baselines3", "torch", "stable_baselines3"),
        Contender("CleanRL's loop", "torch", "cleanrl"),
    ),
    references=("TF-Agents", "Stable-Baselines3", "CleanRL's loop"),
)
EIGHT = Group(
    "DQN, 8 Gymnasium environments",
    (*_ours(8), Contender("TF-Agents", "tf_agents", "dqn", {"envs": 8})),
    references=("TF-Agents",),
    units=("environment steps",),
)
DISTRIBUTIONS = Group(
    "distributions of the return, one Gymnasium environment",
    (
        *(
            Contender(
                f"tfrl, {label}",
                "tfrl",
                "dqn",
                {"envs": 1, "algorithm": algorithm, "jit_compile": True},
            )
            for label, algorithm in (("C51", "c51"), ("QR-DQN", "qr_dqn"))
        ),
        Contender("Stable-Baselines3's QR-DQN", "torch", "stable_baselines3_qr_dqn"),
    ),
    references=("Stable-Baselines3's QR-DQN",),
)
FLOORS = Group(
    "the floors of an iteration, each part alone",
    (
        Contender("Gymnasium's step, in Python", "floors", "gymnasium_step"),
        Contender("numpy_function, in a graph", "floors", "numpy_function"),
        Contender("matrix products, in NumPy", "floors", "matrix_products"),
        Contender("a tf.function call, from Python", "floors", "function_call"),
    ),
)


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("dqn", (ONE, EIGHT, DISTRIBUTIONS, FLOORS))


if __name__ == "__main__":
    sys.exit(command_line.main(["dqn", *sys.argv[1:]]))
