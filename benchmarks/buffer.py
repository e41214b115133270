"""Measures adding to and sampling from the replay buffer, by its capacity.

    python -m benchmarks buffer

A sample is 64 pairs of successive frames. For transitions of CartPole the peer is
TF-Agents' buffer; for images of 84x84x4 bytes it is NumPy's indexing of an array.
"a call" makes one `tf.function` call from Python per operation; "in a graph" does a
hundred operations in one call; "compiled" is the same graph compiled by XLA, which
TF-Agents' buffer does not support: its graph is not compiled. Prioritized samples of
frames with random priorities are compared with uniform ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import command_line, report
from benchmarks.measurement import Contender, Group, Session
from benchmarks.workers import memory

_FORMS = {
    "add": "add, a call",
    "add, in a loop": "add, in a graph",
    "sample": "sample, a call",
    "sample, in a loop": "sample, in a graph",
    "add, in a loop, compiled": "add, compiled",
    "sample, in a loop, compiled": "sample, compiled",
    "next": "next of as_dataset",
}
_PRIORITIZED = ("sample, in a loop", "sample, in a loop, compiled")
_IMAGE = 84 * 84 * 4
_WORTH_WEIGHING = 20_000_000


def transitions(quick: bool) -> Iterator[Group]:
    """Yields groups that compare tfrl's buffer with TF-Agents' at each capacity."""
    capacities = _capacities(quick)
    for what, form in _FORMS.items():
        if quick and what in ("add", "sample"):
            continue
        contenders = tuple(
            Contender(
                f"{title}, {capacity:,}",
                system,
                "buffer",
                {
                    "what": what if system == "tfrl" else _as_a_graph(what),
                    "capacity": capacity,
                    "image": False,
                },
            )
            for title, system in (("tfrl", "tfrl"), ("TF-Agents", "tf_agents"))
            for capacity in capacities
        )
        references = (f"TF-Agents, {capacities[-1]:,}", f"tfrl, {capacities[0]:,}")
        yield Group(f"transitions, {form}", contenders, references, ("operations",))


def prioritized(quick: bool) -> Iterator[Group]:
    """Yields groups that compare prioritized with uniform samples at each capacity."""
    capacities = _capacities(quick)
    for what in _PRIORITIZED:
        contenders = tuple(
            Contender(
                f"{title}, {capacity:,}",
                "tfrl",
                "buffer",
                {
                    "what": what,
                    "capacity": capacity,
                    "image": False,
                    "prioritized": title == "prioritized",
                },
            )
            for title in ("prioritized", "uniform")
            for capacity in capacities
        )
        references = tuple(f"uniform, {capacity:,}" for capacity in capacities)
        yield Group(
            f"priorities, {_FORMS[what]}", contenders, references, ("operations",)
        )


def _capacities(quick: bool) -> tuple[int, ...]:
    return (10_000, 1_000_000) if quick else (10_000, 100_000, 1_000_000)


def _as_a_graph(what: str) -> str:
    return what.removesuffix(", compiled")


def images(session: Session) -> Iterator[Group]:
    """Yields groups that compare tfrl's buffer with NumPy's arrays at each capacity."""
    for capacity in (10_000,) if session.quick else (10_000, 50_000, 200_000):
        needed, free = 2.2 * capacity * _IMAGE, memory.available()
        if needed > free > 0:
            session.say(
                f"buffer: {capacity:,} images are left out: they need "
                f"{needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free.\n"
            )
            continue
        for what, ours in (("add", "add, in a loop"), ("sample", "sample, in a loop")):
            settings: dict[str, Any] = {"capacity": capacity}
            yield Group(
                f"{capacity:,} images of 84x84x4, {what}",
                (
                    Contender(
                        "tfrl",
                        "tfrl",
                        "buffer",
                        {**settings, "what": ours, "image": True},
                    ),
                    Contender(
                        "NumPy", "floors", "numpy_images", {**settings, "what": what}
                    ),
                ),
                ("NumPy",),
                ("operations",),
            )


def memory_taken(session: Session) -> report.Result:
    """Returns the memory of the larger buffers, relative to the size of their data."""
    shares: dict[str, tuple[float, float]] = {}
    for contender, facts in session.facts:
        raw = facts.get("raw bytes", 0)
        if raw > _WORTH_WEIGHING:
            label = f"{contender.label.partition(',')[0]}, {raw / 1e6:,.0f} MB"
            taken = facts["resident bytes"] / raw, facts["peak bytes"] / raw
            shares.setdefault(label, taken)
    return report.Result(
        "buffer",
        "memory of a full buffer, against the raw size of what it holds",
        "times the raw size",
        [report.Series(label, [taken]) for label, (taken, _) in shares.items()],
        notes=[
            f"{label}: while it was made, up to {peak:.2f} times"
            for label, (_, peak) in shares.items()
        ],
        less_is_better=True,
    )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("buffer", transitions(session.quick))
    session.measure("buffer", prioritized(session.quick))
    session.measure("buffer", images(session))
    if not session.quick:  # Memory is measured in new processes; quick runs have none.
        session.add(memory_taken(session))


if __name__ == "__main__":
    sys.exit(command_line.main(["buffer", *sys.argv[1:]]))
