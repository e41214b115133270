"""The contenders of the benchmarks sac and td3: tfrl and its peers on Pendulum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.measurement import Contender, Group

SIZES = ((64, 64), (256, 256))  # Units of a hidden layer, and of a batch.


def groups(algorithm: str) -> Iterator[Group]:
    """Yields a group of contenders for each size of the networks.

    Args:
      algorithm: "sac" or "td3".
    """
    for units, batch in SIZES:
        settings = {"algorithm": algorithm, "units": units, "batch": batch}
        yield Group(
            f"{algorithm.upper()} on Pendulum, two layers of {units}, batches of "
            f"{batch}",
            (
                _ours("tfrl", settings, native=False, jit_compile=False),
                _ours("tfrl, compiled", settings, native=False, jit_compile=True),
                _ours(
                    "tfrl, native and compiled",
                    settings,
                    native=True,
                    jit_compile=True,
                ),
                Contender("TF-Agents", "tf_agents", "actor_critic", settings),
                Contender("Stable-Baselines3", "torch", "actor_critic", settings),
                Contender("SBX", "sbx", "actor_critic", settings),
                Contender("matrix products alone", "floors", "update", settings),
            ),
            references=("TF-Agents", "Stable-Baselines3", "SBX"),
        )


def _ours(label: str, settings: dict[str, Any], **options: bool) -> Contender:
    # An example defines flags, so each has a process of its own.
    system = f"tfrl:{settings['algorithm']}"
    return Contender(label, system, "actor_critic", {**settings, **options})
