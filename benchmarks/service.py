"""Compares the replay service with Reverb: writing, sampling, priorities, memory.

    python -m benchmarks service

On both sides server, writer and sampler are separate processes that run the same code,
on all cores unless `--cores` names some. Small items are two steps of CartPole, stacks
are two steps of 84x84x4 bytes, and frames are five steps of 84x84 bytes;
successive items share four steps. "Unix socket" is the service without memory shared
between server and clients; "TCP" is the service with a network connection only, as
between hosts. The last lines compare the results with their targets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks import command_line, comparison, processes, report
from benchmarks.measurement import Contender, Group, Session
from benchmarks.workers import memory

_REVERB, _OURS = "Reverb", "tfrl"
_UNSHARED = {"tfrl, Unix socket": "replay_unix", "tfrl, TCP": "replay_tcp"}
SYSTEMS = {_REVERB: "reverb", _OURS: "replay_service", **_UNSHARED}
_KINDS = {"small": "small items", "stacks": "stacks", "frames": "frames"}
_FILL = {"small": 20_000, "stacks": 2_000, "frames": 5_000}
_WEIGHED = {"small": 50_000, "stacks": 3_000, "frames": 10_000}


@dataclasses.dataclass(frozen=True)
class Target:
    """The target of a measurement.

    Attributes:
      label: The label of the contender that it is for.
      ratio: The least ratio to Reverb.
      milliseconds: The most milliseconds that one operation may take, instead of a
        ratio.
    """

    label: str
    ratio: float | None = None
    milliseconds: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
      title: Its name.
      role: The role of the process that does it: "writer" or "sampler".
      task: A task of `benchmarks.workers.replaying`.
      settings: The task's arguments, except the server's address.
      least: The least ratio to Reverb.
      unshared: The least ratio to Reverb where no memory is shared; None leaves these
        contenders out.
      milliseconds: The most milliseconds that one operation may take.
      unit: The unit of the counts.
    """

    title: str
    role: str
    task: str
    settings: Mapping[str, Any]
    least: float | None = None
    unshared: float | None = None
    milliseconds: float | None = None
    unit: str = "items"

    def group(self, addresses: Mapping[str, str]) -> Group:
        """Returns its contenders, each with its server."""
        unshared = [] if self.unshared is None else _UNSHARED
        labels = [_REVERB, _OURS, *unshared]
        return Group(
            self.title,
            tuple(
                Contender(
                    label,
                    f"{SYSTEMS[label]}:{self.role}",
                    self.task,
                    {"address": addresses[label], **self.settings},
                    {"address": addresses.get(comparison.other(label), "")},
                )
                for label in labels
            ),
            (_REVERB,),
            (self.unit,),
        )

    def targets(self) -> Iterator[Target]:
        """Yields its targets."""
        if self.least is not None:
            yield Target(_OURS, self.least)
        if self.unshared:
            for label in _UNSHARED:
                yield Target(label, self.unshared)
        if self.milliseconds is not None:
            yield Target(_OURS, milliseconds=self.milliseconds)


def rows(quick: bool) -> Iterator[Row]:
    """Yields all measurements."""
    yield from _writing(quick)
    yield from _sampling(quick)
    for kind in ("small", "stacks"):
        table = {"table": f"read {kind}"}
        limit = 2.0
        one, many = {**table, "items": 1}, {**table, "items": 0}
        yield Row(
            f"client.sample, one of {_KINDS[kind]}",
            *("sampler", "generate", one),
            milliseconds=limit,
        )
        if not quick:
            title = f"client.sample, many {_KINDS[kind]}"
            yield Row(title, "sampler", "generate", many)
    keys = {"table": "read small, prioritized", "keys": 256}
    title = "mutate_priorities with 256 keys"
    yield Row(title, "sampler", "mutate", keys, 0.5, unit="calls")


def _writing(quick: bool) -> Iterator[Row]:
    flushes = {16: "a flush every 16", None: "a flush at the end", 0: "each flushed"}
    for kind, what in _KINDS.items():
        for flush, how in flushes.items():
            if flush != 16 and (quick or kind != "small"):
                continue
            yield Row(
                f"write {what}, {how}",
                "writer",
                "write",
                {
                    "table": f"write {kind}",
                    **{"kind": kind, "flush": flush, "noise": False},
                },
                1.5 if kind == "small" else 1.2,
            )


def _sampling(quick: bool) -> Iterator[Row]:
    tables = {
        "read small": "small items",
        "read small, prioritized": "prioritized small items",
        "read stacks": "stacks",
        "read frames": "frames",
    }
    for table, what in tables.items():
        small = "small" in table
        for batch in (256,) if quick else (64, 256):
            yield Row(
                f"sample {what}, batches of {batch}",
                "sampler",
                "sample",
                {"table": table, "batch": batch},
                4.0 if small else {64: 1.2, 256: 2.0}[batch],
                unshared=0.0 if small else 0.7,
            )


def _tables(write: int) -> dict[str, dict[str, Any]]:
    def table(kind: str, size: int, selector: str = "uniform") -> dict[str, Any]:
        return {"kind": kind, "selector": selector, "max_size": size}

    return {
        **{f"read {kind}": table(kind, size) for kind, size in _FILL.items()},
        "read small, prioritized": table("small", _FILL["small"], "prioritized"),
        **{f"write {kind}": table(kind, write * _FILL[kind]) for kind in _KINDS},
    }


def _system(session: Session, label: str, role: str = "") -> str:
    """Returns the system of a contender of this checkout or of the other one."""
    name = SYSTEMS[comparison.this(label)] + role
    if session.against and comparison.is_other(label):
        return processes.in_checkout(name, session.against)
    return name


@contextlib.contextmanager
def _server(
    session: Session, label: str, tables: Mapping[str, Any]
) -> Iterator[tuple[processes.Worker, str]]:
    """Starts a server; yields its worker and its address."""
    worker = processes.start(_system(session, label), session.pool.timeout)
    with contextlib.closing(worker):
        _, facts = worker.make("server", {"tables": tables})
        yield worker, facts["address"]


def _write(
    session: Session, label: str, address: str, table: str, count: int, noise: bool
) -> int:
    """Fills a table by a writer; returns the bytes of a step."""
    settings = {"table": table, "kind": table.split()[1].strip(","), "noise": noise}
    worker = session.pool.get(_system(session, label, ":writer"))
    settings = {"address": address, **settings, "flush": 64}
    task, facts = worker.make("write", settings)
    worker.run(task, count)
    step: int = facts["step bytes"]
    return step


def _speed(session: Session, labels: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        addresses = {}
        tables = _tables(write=2)
        for label in labels:
            _, address = stack.enter_context(_server(session, label, tables))
            addresses[label] = address
            for table, options in tables.items():
                if table.startswith("read"):
                    size = options["max_size"]
                    _write(session, label, address, table, size, noise=False)
        for label in _UNSHARED:
            addresses[label] = addresses[_OURS]
            if session.against:
                other = comparison.other
                addresses[other(label)] = addresses[other(_OURS)]
        addresses.setdefault(_REVERB, "")  # Its contenders then report what is missing.
        groups = (row.group(addresses) for row in rows(session.quick))
        session.measure("service", groups)


def weigh(session: Session, label: str, kind: str) -> tuple[float, float]:
    """Returns a server's memory per item of noise, in bytes and relative to raw size.

    The raw size counts each step of the items once.
    """
    count = _WEIGHED[kind] // (5 if session.quick else 1)
    tables = {
        f"read {kind}": {"kind": kind, "selector": "uniform", "max_size": 2 * count}
    }
    with _server(session, label, tables) as (worker, address):
        # The first items include memory that later items do not need.
        _write(session, label, address, f"read {kind}", count // 10, noise=True)
        before = memory.held(worker.pid)
        step = _write(session, label, address, f"read {kind}", count, noise=True)
        more = memory.held(worker.pid) - before
    return more / count, more / (step * count)


def _memory(session: Session, labels: list[str]) -> list[str]:
    said = []
    for kind, what in _KINDS.items():
        weights = {label: weigh(session, label, kind) for label in labels}
        result = report.Result(
            "service",
            f"memory, {what} of noise",
            "bytes an item",
            [report.Series(label, [each]) for label, (each, _) in weights.items()],
            (_REVERB,),
            [f"{label}: {raw:.2f} x raw" for label, (_, raw) in weights.items()],
            less_is_better=True,
        )
        session.add(result)
        each, raw = weights[_OURS]
        if kind != "small":
            said.append(_line(result.title, f"{raw:.2f} x raw", "<= 1.3", raw <= 1.3))
        elif _REVERB in weights:
            other = weights[_REVERB][0]
            shown = f"{each:,.0f} bytes"
            said.append(
                _line(result.title, shown, f"< {other:,.0f} (Reverb)", each < other)
            )
    return said


def against_targets(session: Session, measured: Iterable[Row]) -> Iterator[str]:
    """Yields a line for each target, which says whether the result reached it."""
    results = {result.title: result for result in session.results}
    for row in measured:
        result = results[row.title]
        for target in row.targets():
            what = row.title + target.label.removeprefix(_OURS)
            series = [s for s in result.series if s.label == target.label]
            ratio = result.ratio(series[0], _REVERB) if series else None
            if series and target.milliseconds is not None:
                taken = 1e3 / statistics.median(series[0].values)
                most = target.milliseconds
                yield _line(what, f"{taken:.2f} ms", f"<= {most:g} ms", taken <= most)
            elif ratio is not None and target.ratio is not None:
                least = target.ratio
                is_right = ratio.median >= least
                yield _line(what, f"{ratio.median:.2f} x", f">= {least:g} x", is_right)
            else:
                yield f"{what:<56} not measured"


def _line(what: str, shown: str, target: str, ok: bool) -> str:
    return f"{what:<56} {shown:>12}  {target:<18} {'ok' if ok else 'SHORT'}"


def run(session: Session) -> None:
    """Runs the benchmark."""
    if session.against:
        labels = [_OURS, comparison.other(_OURS)]
        _speed(session, labels)
        _memory(session, labels)
        return
    labels = [_REVERB, _OURS]
    try:
        processes.SYSTEMS[SYSTEMS[_REVERB]].command()
    except processes.WorkerError as error:
        session.say(f"service: Reverb is left out: {error}\n")
        labels.remove(_REVERB)
    _speed(session, labels)
    weights = _memory(session, labels)
    session.say("service: results and targets, as ratios to Reverb unless marked")
    for line in [*against_targets(session, rows(session.quick)), *weights]:
        session.say(line)
    session.say("")


if __name__ == "__main__":
    sys.exit(command_line.main(["service", *sys.argv[1:]]))
