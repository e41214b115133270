"""Compares DreamerV3's updates with its authors' in JAX, and with their products.

    TFRL_DREAMERV3=~/dreamerv3 python -m benchmarks dreamer --rounds=5 --seconds=5

The variable names a clone of github.com/danijar/dreamerv3. The observations are three
numbers, and the action is one. tfrl's iteration is a step of its Pendulum, a draw from
the buffer and an update; the authors' is an update alone, always with the same batch.
Both compute with 32 bits: on a CPU, products of 16 bits are slower.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_SIZES = ("1m", "12m")
_BATCH, _LENGTH = 16, 64  # Sequences, and frames in each.


def groups() -> Iterator[Group]:
    """Yields a group for each size."""
    for size in _SIZES:
        settings = {"size": size, "batch": _BATCH, "length": _LENGTH}
        ours = {
            "algorithm": "dreamer",
            "batch": _BATCH,
            "native": True,
            "jit_compile": True,
            "size": size,
            "sequence_length": _LENGTH,
        }
        yield Group(
            f"DreamerV3 {size}, {_BATCH} sequences of {_LENGTH} frames",
            (
                Contender("tfrl", "tfrl", "actor_critic", ours),
                Contender("the authors", "dreamerv3", "updates", settings),
                Contender("products alone", "floors", "dreamer_products", settings),
            ),
            references=("the authors", "products alone"),
        )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("dreamer", groups())


if __name__ == "__main__":
    sys.exit(command_line.main(["dreamer", *sys.argv[1:]]))
