"""Measures contenders in turn, in rounds, so that drift affects all equally."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks import comparison, processes, report

_Notes = dict[str, list[str]]  # From an event to the labels of its contenders.


@dataclasses.dataclass(frozen=True)
class Contender:
    """A candidate of a comparison.

    Attributes:
      label: Its name in the table.
      system: A name of `processes.SYSTEMS`; with ":" and a role, a separate worker.
      task: The name of the task that its worker makes.
      settings: The arguments of the task.
      other_settings: Arguments that differ for the same contender in another checkout.
    """

    label: str
    system: str
    task: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    other_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it measures tfrl, rather than a peer or a floor."""
        return self.system.partition(":")[0] in processes.OURS

    def in_checkout(self, checkout: pathlib.Path) -> Contender:
        """Returns the same contender, run by another checkout's package and workers."""
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
      title: The name of the measured quantity.
      contenders: The contenders.
      references: The labels of the contenders that the others are compared with.
      units: Units of the workers' counts; each gives one table.
      count: The iterations of each window, the same for all contenders; for work that
        changes as it proceeds. None runs as many as fit into a window's seconds.
    """

    title: str
    contenders: tuple[Contender, ...]
    references: tuple[str, ...] = ()
    units: tuple[str, ...] = ("iterations",)
    count: int | None = None

    def against(self, checkout: pathlib.Path) -> Group:
        """Returns tfrl's contenders, each followed by the other checkout's."""
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
      quick: Whether to measure less.
      rounds: The number of windows of each contender.
      seconds: The length of a window, by `clock`.
      pool: The workers.
      say: Prints a line for the reader.
      clock: "wall" counts the seconds that passed, "cpu" the seconds of processor time
        that a contender used. The latter leaves waiting out, but depends less on other
        processes.
      against: Another checkout. Its contenders are measured in the same rounds, and
        this checkout's are compared with them instead of with peers.
      device: The device that is compared with the CPU; None takes the first GPU.
      results: The results.
      facts: The facts that workers reported about the contenders.
      windows: All windows that the results were computed from.
    """

    quick: bool
    rounds: int
    seconds: float
    pool: processes.Pool
    say: Callable[[str], None]
    clock: str = "wall"
    against: pathlib.Path | None = None
    device: str | None = None
    results: list[report.Result] = dataclasses.field(default_factory=list)
    facts: list[tuple[Contender, Mapping[str, Any]]] = dataclasses.field(
        default_factory=list
    )
    windows: list[processes.Window] = dataclasses.field(default_factory=list)

    def add(self, result: report.Result) -> None:
        """Adds a result, and prints its table."""
        self.results.append(result)
        self.say((comparison if self.against else report).table(result))

    def measure(self, benchmark: str, groups: Iterable[Group]) -> None:
        """Measures groups in order; a contender that fails is noted and left out."""
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
                self.pool.close()  # The next group gets new workers.

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
            if same:  # It repeats exactly the calls of this checkout's contender.
                count, warm_up = same[0].count, same[0].warm_up
                for warm in warm_up:
                    worker.run(task, warm)
            elif count is None:
                count, warm_up = self._calibrate(worker, task)
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
        series = [
            report.Series(
                entry.contender.label,
                [w.counts[unit] / self._seconds_of(w) for w in entry.windows],
            )
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

    def _calibrate(self, worker: processes.Worker, task: int) -> tuple[int, list[int]]:
        """Warms a task up, and measures how fast it is.

        Returns:
          The number of iterations that take about `seconds` of the clock, and the
          numbers of iterations of the calls that were made to find it.
        """
        worker.run(task, 1)
        count, warm_up = 20, [1]
        while True:
            window = worker.run(task, count)
            elapsed = self._seconds_of(window)
            warm_up.append(count)
            done = next(iter(window.counts.values()))
            if elapsed >= self.seconds / 4:
                return max(1, round(done * self.seconds / elapsed)), warm_up
            wanted = round(done * self.seconds / 3 / max(elapsed, 1e-6))
            count = max(2 * count, wanted)

    def _seconds_of(self, window: processes.Window) -> float:
        return window.cpu_seconds if self.clock == "cpu" else window.seconds


def _in_turn(entries: Iterable[_Entry], number: int) -> list[_Entry]:
    """Returns the contenders in the order of a round.

    The two checkouts' contenders of one label swap places every other round, because
    the second one finds the libraries' code in the processor's caches. A single pair
    keeps its places, because there each one comes after the other.
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
