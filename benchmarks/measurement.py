"""Measuring contenders in turn, round after round, so that drift hits all alike."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks import comparison, processes, report

_Notes = dict[str, list[str]]  # From what happened to the contenders it happened to.


@dataclasses.dataclass(frozen=True)
class Contender:
    """One of those that are measured in turn.

    Attributes:
      label: its name in the table.
      system: of `processes.SYSTEMS`; with ":" and a role, a worker of its own.
      task: what its worker makes.
      settings: and with what arguments.
      other_settings: those of the same contender in another checkout, where different.
    """

    label: str
    system: str
    task: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    other_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it measures tfrl, not a peer or a floor."""
        return self.system.partition(":")[0] in processes.OURS

    def in_checkout(self, checkout: pathlib.Path) -> Contender:
        """The same contender, run by another checkout's package and workers."""
        return Contender(
            comparison.other(self.label),
            processes.in_checkout(self.system, checkout),
            self.task,
            {**self.settings, **self.other_settings},
        )


@dataclasses.dataclass(frozen=True)
class Group:
    """Contenders that are measured in turn, for one table.

    Attributes:
      title: what is measured.
      contenders: who is.
      references: the labels of those that the others are compared with.
      units: of the workers' counts, one table each.
      count: iterations of each window, for all contenders the same; None has each do
        as many as a window's seconds hold. For what changes as it goes on.
    """

    title: str
    contenders: tuple[Contender, ...]
    references: tuple[str, ...] = ()
    units: tuple[str, ...] = ("iterations",)
    count: int | None = None

    def against(self, checkout: pathlib.Path) -> Group:
        """Our contenders, each beside the same of another checkout."""
        contenders = tuple(
            one
            for contender in self.contenders
            if contender.is_ours
            for one in (contender, contender.in_checkout(checkout))
        )
        return dataclasses.replace(self, contenders=contenders, references=())


@dataclasses.dataclass
class _Entry:
    contender: Contender
    worker: processes.Worker
    task: int
    count: int
    warm_up: list[int]  # Iterations of each call before the first window.
    windows: list[processes.Window] = dataclasses.field(default_factory=list)
    failed: bool = False


@dataclasses.dataclass
class Session:
    """A run of benchmarks.

    Attributes:
      quick: whether to measure less.
      rounds: windows of each contender.
      seconds: how long a window is.
      pool: the workers.
      say: takes lines for the reader.
      clock: "wall" counts the seconds that passed, "cpu" those that a contender had of
        its core: less true, since it leaves waiting out, but of use on a busy machine.
      against: another checkout, whose contenders are measured in the same rounds, and
        with which ours are compared in the place of peers.
      results: what was measured.
      facts: what workers told of the contenders.
      windows: all that the results were computed from.
    """

    quick: bool
    rounds: int
    seconds: float
    pool: processes.Pool
    say: Callable[[str], None]
    clock: str = "wall"
    against: pathlib.Path | None = None
    results: list[report.Result] = dataclasses.field(default_factory=list)
    facts: list[tuple[Contender, Mapping[str, Any]]] = dataclasses.field(
        default_factory=list
    )
    windows: list[processes.Window] = dataclasses.field(default_factory=list)

    def add(self, result: report.Result) -> None:
        """Takes a result, and shows it."""
        self.results.append(result)
        self.say((comparison if self.against else report).table(result))

    def measure(self, benchmark: str, groups: Iterable[Group]) -> None:
        """Measures groups one after another; what fails is named, the rest goes on."""
        for group in groups:
            if self.against:
                group = group.against(self.against)
                if not group.contenders:
                    continue
            notes: _Notes = {}
            entries: list[_Entry] = []
            for contender in group.contenders:
                entry = self._prepare(contender, group.count, entries, notes)
                entries += [entry] if entry else []
            for i in range(self.rounds):
                for entry in _in_turn(entries, i):
                    _measure_once(entry, notes)
            for unit in group.units:
                self.add(self._result(benchmark, group, unit, entries, notes))
            self.windows += [w for entry in entries for w in entry.windows]
            if not self.quick:
                self.pool.close()  # The next group's workers are new ones.

    def _prepare(
        self,
        contender: Contender,
        count: int | None,
        before: Iterable[_Entry],
        notes: _Notes,
    ) -> _Entry | None:
        label = contender.label
        same = [e for e in before if comparison.other(e.contender.label) == label]
        try:
            worker = self.pool.get(contender.system)
            task, facts = worker.make(contender.task, contender.settings)
            if same:  # Does just what ours does.
                count, warm_up = same[0].count, same[0].warm_up
                for warm in warm_up:
                    worker.run(task, warm)
            elif count is None:
                count, warm_up = _calibrate(worker, task, self.seconds)
            else:
                warm_up = [max(1, count // 8)]
                worker.run(task, *warm_up)
        except processes.WorkerError as error:
            notes.setdefault(f"not measured: {error}", []).append(contender.label)
            return None
        self.facts.append((contender, facts))
        return _Entry(contender, worker, task, count, warm_up)

    def _result(
        self,
        benchmark: str,
        group: Group,
        unit: str,
        entries: list[_Entry],
        notes: _Notes,
    ) -> report.Result:
        def rate(window: processes.Window) -> float:
            cpu = self.clock == "cpu"
            return window.counts[unit] / (window.cpu_seconds if cpu else window.seconds)

        series = [
            report.Series(entry.contender.label, [rate(w) for w in entry.windows])
            for entry in entries
            if entry.windows
        ]
        return report.Result(
            benchmark,
            group.title,
            f"{unit}/s",
            series,
            group.references,
            notes=[f"{'; '.join(labels)}: {what}" for what, labels in notes.items()],
        )


def _in_turn(entries: Iterable[_Entry], number: int) -> list[_Entry]:
    """The contenders in the order of a round.

    The two checkouts' contenders of one label change places every other round: the
    second finds the processor's caches warm with the libraries' code. A lone pair
    keeps its places, since there either comes after the other.
    """
    places: dict[str, list[_Entry]] = {}
    for entry in entries:
        places.setdefault(comparison.this(entry.contender.label), []).append(entry)
    step = -1 if number % 2 and len(places) > 1 else 1
    return [entry for place in places.values() for entry in place[::step]]


def _measure_once(entry: _Entry, notes: _Notes) -> None:
    if entry.failed:
        return
    try:
        entry.windows.append(entry.worker.run(entry.task, entry.count))
    except processes.WorkerError as error:
        entry.failed = True
        notes.setdefault(f"failed: {error}", []).append(entry.contender.label)


def _calibrate(
    worker: processes.Worker, task: int, seconds: float
) -> tuple[int, list[int]]:
    """Warms a task up.

    Returns:
      How many iterations take about `seconds`, and those of each call before.
    """
    worker.run(task, 1)
    count, warm_up = 20, [1]
    while True:
        elapsed, _, counts = worker.run(task, count)
        warm_up.append(count)
        done = next(iter(counts.values()))
        if elapsed >= seconds / 4:
            return max(1, round(done * seconds / elapsed)), warm_up
        count = max(2 * count, round(done * seconds / 3 / max(elapsed, 1e-6)))
