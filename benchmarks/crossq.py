"""Compares CrossQ, and SAC with SimBa's networks, with SBX on Pendulum.

    python -m benchmarks crossq

The widths are those of tfrl's presets for MuJoCo, for both libraries. All else is as
in the benchmark sac: an iteration is one step of the environment and one update.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_BATCH = 256
_FORMS = {
    "tfrl, compiled": {"native": False, "jit_compile": True},
    "tfrl, native and compiled": {"native": True, "jit_compile": True},
}


def groups() -> Iterator[Group]:
    """Yields a group for each kind of networks."""
    yield _group(
        "CrossQ, two layers of 256 in the actor and of 512 in critics",
        "crossq",
        actor=[256, 256],
        critic=[512, 512],
        changes={},
        theirs={},
    )
    yield _group(
        "SAC with SimBa, a block of 128 in the actor and two of 512 in critics",
        "sac",
        actor=[128],
        critic=[512, 512],
        changes={"encoder": "simba", "weight_decay": 0.01},
        theirs={"policy": "SimbaPolicy"},
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("crossq", groups())


def _group(
    title: str,
    algorithm: str,
    *,
    actor: list[int],
    critic: list[int],
    changes: dict[str, Any],
    theirs: dict[str, Any],
) -> Group:
    same = {"algorithm": algorithm, "batch": _BATCH}
    layers = {"actor_fc_layer_params": actor, "critic_fc_layer_params": critic}
    ours = (
        Contender(
            label,
            f"tfrl:{algorithm}",
            "actor_critic",
            {**same, **form, **layers, **changes},
        )
        for label, form in _FORMS.items()
    )
    net_arch = {"net_arch": {"pi": actor, "qf": critic}}
    peer = Contender("SBX", "sbx", "actor_critic", {**same, **net_arch, **theirs})
    return Group(f"{title}, batches of {_BATCH}", (*ours, peer), references=("SBX",))


if __name__ == "__main__":
    sys.exit(command_line.main(["crossq", *sys.argv[1:]]))
