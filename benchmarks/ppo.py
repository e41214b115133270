"""Compares PPO on CartPole with its peers.

    python -m benchmarks ppo

The settings are in `benchmarks/workers/ppo_settings.py`. On native environments, tfrl
and the loop that PureJaxRL writes on gymnax are one compiled program each. On eight
environments of Gymnasium, every peer calls Python. An iteration is a rollout and its
updates. The runs of a sweep are also evaluated at the end of each window.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

SIZES = ((4, 128), (128, 128), (1024, 32))  # Environments, and steps of a rollout.
RUNS = 32  # Of a sweep.


def groups() -> Iterator[Group]:
    """Yields the groups of contenders."""
    for envs, steps in SIZES:
        settings = {"envs": envs, "steps": steps}
        native = {**settings, "native": True, "jit_compile": True}
        yield Group(
            f"PPO on native CartPole, {envs} environments, rollouts of {steps} steps",
            (
                Contender("tfrl, compiled", "tfrl:ppo", "ppo", native),
                Contender("JAX", "jax", "ppo", settings),
            ),
            references=("JAX",),
            units=("environment steps",),
        )
    settings = {"envs": 8, "steps": 128}
    gymnasium = {**settings, "native": False}
    peers = (
        Contender("Stable-Baselines3", "torch", "stable_baselines3_ppo", settings),
        Contender("CleanRL's loop", "torch", "cleanrl_ppo", settings),
        Contender("TF-Agents", "tf_agents", "ppo", settings),
    )
    yield Group(
        "PPO on 8 CartPoles of Gymnasium, rollouts of 128 steps",
        (
            Contender("tfrl", "tfrl:ppo", "ppo", {**gymnasium, "jit_compile": False}),
            Contender(
                "tfrl, compiled", "tfrl:ppo", "ppo", {**gymnasium, "jit_compile": True}
            ),
            *peers,
        ),
        references=tuple(peer.label for peer in peers),
        units=("environment steps",),
    )
    settings = {"envs": 4, "steps": 128}
    one = Contender(
        "one run", "tfrl:ppo", "ppo", {**settings, "native": True, "jit_compile": True}
    )
    many = Contender(
        f"{RUNS} runs at once", "tfrl_threads", "ppo_sweep", {**settings, "runs": RUNS}
    )
    yield Group(
        "sweep of PPO: iterations of all runs", (one, many), references=(one.label,)
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("ppo", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["ppo", *sys.argv[1:]]))
