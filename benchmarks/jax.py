"""Compares environments written in JAX with JAX's own programs, in one run.

    python -m benchmarks jax

Random play is a compiled loop of each library, in tfrl's environment and by the
library's own functions, which begin an ended episode again. "First call" is the time
from the environment's name to the end of one step, without the import of TensorFlow or
JAX: tfrl's "cold" with an empty cache, "warm" in the next process. PPO, PQN and DQN on
MinAtar are compared with loops of PureJaxRL's kind; their settings are in
`benchmarks/workers/minatar_settings.py`.

JAX and the libraries are those of this Python environment (`pip install
'tfrl[jax,gymnax]'`); libraries that it does not have are left out.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line, processes, report
from benchmarks.measurement import Contender, Group, Session

# The module of a library, the environment, and how many of it.
_PLAYED = (
    ("gymnax", "gymnax/CartPole-v1", 64),
    ("gymnax", "gymnax/Breakout-MinAtar", 64),
    ("gymnax", "gymnax/Asterix-MinAtar", 64),
    ("gymnax", "gymnax/SpaceInvaders-MinAtar", 64),
    ("gymnax", "gymnax/Freeway-MinAtar", 64),
    ("jumanji", "jumanji/Snake-v1", 64),
    ("pgx", "pgx/2048", 64),
    ("navix", "navix/Navix-Empty-5x5-v0", 64),
    ("xminigrid", "xland/MiniGrid-Empty-8x8", 64),
    ("brax", "brax/fast", 64),
    ("craftax", "craftax/Craftax-Classic-Symbolic-v1", 64),
)
_TRAINED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ppo", {"envs": 64, "steps": 32}),
    ("pqn", {"envs": 64, "steps": 32}),
    ("dqn", {"envs": 64}),
)
_OURS, _THEIRS = "tfrl", "JAX"


def groups(quick: bool) -> Iterator[Group]:
    """Yields the groups of contenders."""
    for settings in _played(quick):
        yield Group(
            f"random play in {settings['envs']} of {settings['environment']}",
            (
                Contender(_OURS, "tfrl:jax", "random_play", settings),
                Contender(_THEIRS, "jax_environments", "random_play", settings),
            ),
            references=(_THEIRS,),
            units=("environment steps",),
        )
    for algorithm, settings in _TRAINED[: 1 if quick else None]:
        ours = {"algorithm": algorithm, **settings}
        yield Group(
            f"{algorithm.upper()} on gymnax/Breakout-MinAtar, {settings['envs']} of it",
            (
                Contender(_OURS, "tfrl:jax", "minatar", ours),
                Contender(
                    _THEIRS, "jax_here", algorithm, {**settings, "minatar": True}
                ),
            ),
            references=(_THEIRS,),
            units=("environment steps",),
        )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("jax", groups(session.quick))
    if session.against is None:
        for settings in _played(session.quick):
            session.add(_first_calls(session.pool.timeout, settings))


def _played(quick: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"environment": environment, "envs": envs}
        for module, environment, envs in _PLAYED
        if importlib.util.find_spec(module)
    ]
    return found[1:2] if quick else found


def _first_calls(timeout: float, settings: dict[str, Any]) -> report.Result:
    """Returns the seconds of the first calls in new processes."""
    seconds = {}
    notes = []
    with tempfile.TemporaryDirectory() as folder:
        for label, system in (
            (f"{_OURS}, cold", "tfrl"),
            (f"{_OURS}, warm", "tfrl"),
            (_THEIRS, "jax_environments"),
        ):
            try:
                worker = processes.start(system, timeout, {"TFRL_CACHE_DIR": folder})
                _, facts = worker.make("random_play", settings)
                worker.close()
                seconds[label] = facts["first call"]
            except processes.WorkerError as error:
                notes.append(f"{label}: not measured: {error}")
    return report.Result(
        "jax",
        f"first call of random play in {settings['envs']} of {settings['environment']}",
        "seconds",
        [report.Series(label, [value]) for label, value in seconds.items()],
        references=(_THEIRS,),
        notes=notes,
        less_is_better=True,
    )


if __name__ == "__main__":
    sys.exit(command_line.main(["jax", *sys.argv[1:]]))
