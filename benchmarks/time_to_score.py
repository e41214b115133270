"""Measures the processor time until a policy is good, from the start of the process.

    python -m benchmarks.time_to_score
    python -m benchmarks.time_to_score --only=ppo_cartpole --systems=tfrl,torch
    python -m benchmarks.time_to_score --table

Each run trains with one library in a process of its own, with one thread, until a
greedy evaluation of 20 episodes first reaches the problem's return; see
`benchmarks.score_problems` for the problems and the settings. The processor time is
that of the whole process up to this evaluation, without the time of evaluations. tfrl
trains each seed twice: first with an empty cache of compiled programs, then with the
cache that the first run has filled.

A row of benchmarks/time_to_score.csv is written when a run ends, so an interrupted
command goes on where it was, and a run is done again only if its settings have changed.
At the end the table on docs/speed.md and README's picture are made; --table does only
that. The peers are in their own Python environments: `python -m benchmarks.peers`.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import commits, peers, processes, time_pictures
from benchmarks.score_problems import PROBLEMS, Problem
from tfrl.compilation import processors

CSV = processes.ROOT / "benchmarks" / "time_to_score.csv"
PAGE = processes.ROOT / "docs" / "speed.md"
_BEGIN, _END = "<!-- time to score: begin -->", "<!-- time to score: end -->"
_PICTURED = ("dqn_cartpole", "sac_pendulum")
_SEEDS = 3  # Of a cell that does not say how many it has.
_FIELDS = (
    "problem",
    "system",
    "cache",
    "seed",
    "reached",
    "seconds",
    "evaluation_seconds",
    "steps",
    "return",
    "settings_hash",
    "commit",
    "processor",
    "load",
    "versions",
    "curve",  # Of each evaluation the seconds and the return, "3.1:22.5 3.4:180.0".
)


class Column(NamedTuple):
    """A column of the table.

    Attributes:
      title: Its name for readers.
      system: The system; see `SYSTEMS`.
      cache: The state of the cache of compiled programs; empty without one.
    """

    title: str
    system: str
    cache: str = ""


_WORKERS = "benchmarks.workers"
SYSTEMS = {
    "tfrl": processes.System("tfrl", f"{_WORKERS}.score_time_with_tfrl"),
    "torch": processes.System(
        "Stable-Baselines3", f"{_WORKERS}.score_time_with_torch", "torch"
    ),
    "sbx": processes.System(
        "SBX",
        f"{_WORKERS}.score_time_with_torch",
        "sbx",
        processes.SYSTEMS["sbx"].variables,
    ),
    "tf_agents": processes.System(
        "TF-Agents", f"{_WORKERS}.score_time_with_tf_agents", "tf_agents"
    ),
}
CACHES = {"tfrl": ("cold", "warm")}
COLUMNS = tuple(
    Column(f"{system.title}, {cache}" if cache else system.title, name, cache)
    for name, system in SYSTEMS.items()
    for cache in CACHES.get(name, ("",))
)


class Run(NamedTuple):
    """A problem, a system that trains for it, and a seed."""

    problem: Problem
    system: str
    seed: int

    def task(self) -> dict[str, Any]:
        """Returns what the worker needs, valid in JSON."""
        return self.problem.task(self.system)

    def key(self, cache: str) -> tuple[str, ...]:
        """Returns the fields that identify its row with a state of the cache."""
        text = json.dumps(self.task(), sort_keys=True)
        settings_hash = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.problem.name, self.system, cache, str(self.seed), settings_hash

    def is_of(self, row: Mapping[str, str]) -> bool:
        """Returns whether a row is of this run, perhaps with other settings."""
        names = row["problem"], row["system"], row["seed"]
        return names == (self.problem.name, self.system, str(self.seed))

    def keys(self) -> list[tuple[str, ...]]:
        """Returns the keys of all its rows."""
        return [self.key(cache) for cache in CACHES.get(self.system, ("",))]


def key_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the key of a row; see `Run.key`."""
    names = "problem", "system", "cache", "seed", "settings_hash"
    return tuple(row[name] for name in names)


def runs(
    problems: Sequence[Problem], systems: Sequence[str], num_seeds: int = _SEEDS
) -> Iterator[Run]:
    """Yields the runs of at most so many seeds, the first seed of everything first."""
    for seed in range(num_seeds):
        for problem, system in itertools.product(problems, systems):
            if seed < problem.num_seeds and system in problem.settings:
                yield Run(problem, system, seed)


def read(path: pathlib.Path = CSV) -> list[dict[str, str]]:
    """Returns the rows, as text."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(rows: Sequence[Mapping[str, str]], path: pathlib.Path = CSV) -> None:
    """Writes the rows, in the order of the problems, the columns and the seeds."""
    order = [problem.name for problem in PROBLEMS]
    columns = [(column.system, column.cache) for column in COLUMNS]

    def place(row: Mapping[str, str]) -> tuple[int, int, int]:
        column = columns.index((row["system"], row["cache"]))
        return order.index(row["problem"]), column, int(row["seed"])

    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=place))
    os.replace(partial, path)


def train(run: Run) -> list[dict[str, str]]:
    """Trains; returns a row, or one for each state of the cache.

    Raises:
      WorkerError: The peer's environment is missing, or a process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [
            _row(run, cache, _train(run, {"TFRL_CACHE_DIR": folder}))
            for cache in CACHES.get(run.system, ("",))
        ]


def _train(run: Run, variables: Mapping[str, str]) -> dict[str, Any]:
    """Trains in a process of its own; returns the worker's result."""
    system = SYSTEMS[run.system]
    # Python keeps the compiled form of modules, as it does for users.
    more = {**system.variables, **variables, "PYTHONDONTWRITEBYTECODE": ""}
    result = subprocess.run(
        [*system.command(), json.dumps(run.task()), str(run.seed)],
        env=processes.environment_variables(more),
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        name = f"{system.title}, {run.problem.name}, seed {run.seed}"
        raise processes.WorkerError(f"{name}: {result.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def _row(run: Run, cache: str, found: Mapping[str, Any]) -> dict[str, str]:
    problem, system, cache, seed, settings_hash = run.key(cache)
    return {
        "problem": problem,
        "system": system,
        "cache": cache,
        "seed": seed,
        "reached": "yes" if found["reached"] else "no",
        "seconds": f"{found['seconds']:.1f}",
        "evaluation_seconds": f"{found['evaluation_seconds']:.1f}",
        "steps": str(found["steps"]),
        "return": f"{found['return']:.1f}",
        "settings_hash": settings_hash,
        "commit": commits.current_commit(),
        "processor": processors.description(),
        "load": f"{os.getloadavg()[0]:.1f}",
        "versions": found["versions"],
        "curve": " ".join(f"{x:.1f}:{y:.1f}" for x, y in found["curve"]),
    }


def table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the lines of the table, and of what it was measured on.

    Args:
      rows: The rows; those of other settings are left out.
    """
    by_key = {key_of(row): row for row in rows}
    titles = [column.title for column in COLUMNS]
    head = ["problem", "return", *titles, "fastest peer over tfrl, warm"]
    lines = [_line(head), _line(["---"] * len(head))]
    shown = []
    for problem in PROBLEMS:
        found = [_rows_of(problem, column, by_key) for column in COLUMNS]
        shown += [row for each in found for row in each]
        cells = [
            "none" if column.system not in problem.settings else _cell(each)
            for column, each in zip(COLUMNS, found, strict=True)
        ]
        lines.append(
            _line([problem.title, f"{problem.score:,g}", *cells, _ratio(found)])
        )
    return [*lines, "", *_conditions(shown)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rows_of(
    problem: Problem, column: Column, by_key: Mapping[tuple[str, ...], Any]
) -> list[Mapping[str, str]]:
    """Returns the rows of a cell of the table."""
    if column.system not in problem.settings:
        return []
    keys = [
        Run(problem, column.system, seed).key(column.cache)
        for seed in range(problem.num_seeds)
    ]
    return [by_key[key] for key in keys if key in by_key]


def median(rows: Sequence[Mapping[str, str]]) -> float:
    """Returns the median of the seconds; a run without the return takes forever."""
    return statistics.median(
        float(row["seconds"]) if row["reached"] == "yes" else math.inf for row in rows
    )


def _cell(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the median of the seconds and of the steps, and how many runs count."""
    if not rows:
        return "not run"
    reached = [row for row in rows if row["reached"] == "yes"]
    steps = max(int(row["steps"]) for row in rows)
    if not math.isfinite(median(rows)):
        return f"{len(reached)} of {len(rows)} in {steps:,} steps"
    steps = round(statistics.median(int(row["steps"]) for row in reached))
    text = f"{median(rows):.1f} ({steps:,}"
    if len(reached) < len(rows):
        text += f"; {len(reached)} of {len(rows)} seeds"
    elif len(rows) < _SEEDS:
        text += f"; {len(rows)} seed{'s' * (len(rows) > 1)}"
    return f"{text})"


def _ratio(found: Sequence[Sequence[Mapping[str, str]]]) -> str:
    """Returns the ratio of the fastest peer's time to tfrl's with a warm cache."""
    seconds = {
        column: median(rows)
        for column, rows in zip(COLUMNS, found, strict=True)
        if rows
    }
    own = [x for column, x in seconds.items() if column.cache == "warm"]
    others = [x for column, x in seconds.items() if column.system != "tfrl"]
    if not own or not others or not math.isfinite(own[0]):
        return ""
    fastest = min(others)
    return f"{fastest / own[0]:.1f}" if math.isfinite(fastest) else "none reached it"


def _conditions(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the lines of the sentence that says where the rows were measured."""
    if not rows:
        return []
    loads = sorted(float(row["load"]) for row in rows)
    found = {
        name: ", ".join(sorted({row[name] for row in rows}))
        for name in ("processor", "commit")
    }
    text = (
        f"Measured on one core of {found['processor']}, at {found['commit']}, beside "
        f"other work: the load average was {loads[0]:g} to {loads[-1]:g}."
    )
    return textwrap.wrap(text, 100)


def draw(rows: Sequence[Mapping[str, str]]) -> None:
    """Draws README's picture of two problems, for light and for dark pages."""
    by_key = {key_of(row): row for row in rows}
    named = {problem.name: problem for problem in PROBLEMS}
    panels = []
    for problem in map(named.__getitem__, _PICTURED):
        lines = {
            column.title: [
                [tuple(map(float, point.split(":"))) for point in row["curve"].split()]
                for row in _rows_of(problem, column, by_key)
            ]
            for column in COLUMNS
            if column.system != "sbx"
        }
        panels.append(time_pictures.Panel(problem.title, problem.score, lines))
    for name, theme in time_pictures.THEMES.items():
        figure = time_pictures.draw(panels, theme)
        time_pictures.save(figure, PAGE.parent / "pictures" / f"{name}.svg")


def fill(text: str, lines: Sequence[str]) -> str:
    """Returns a page with the table in its place.

    Args:
      text: The page, which has the two comments that mark the place.
      lines: The lines of the table.
    """
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + "\n".join([_BEGIN, "", *lines, "", _END]) + after


def main(arguments: Sequence[str] | None = None) -> int:
    """Does the missing runs and makes the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.time_to_score",
        description=__doc__.partition("\n")[0],
    )
    named = {problem.name: problem for problem in PROBLEMS}
    for flag, names in (("--only", named), ("--systems", SYSTEMS)):
        parser.add_argument(
            flag,
            default=",".join(names),
            help="names with commas between them (default: %(default)s)",
        )
    parser.add_argument(
        "--seeds", type=int, default=_SEEDS, help="of each problem at most"
    )
    parser.add_argument(
        "--table", action="store_true", help="train nothing, only make the table"
    )
    options = parser.parse_args(arguments)
    problems, systems = options.only.split(","), options.systems.split(",")
    for flag, given, names in (
        ("--only", problems, named),
        ("--systems", systems, SYSTEMS),
    ):
        for unknown in [name for name in given if name not in names]:
            parser.error(f"{flag}: got {unknown!r}, expected {', '.join(names)}")
    failures = 0
    if not options.table:
        chosen = [named[name] for name in problems]
        failures = train_missing(runs(chosen, systems, options.seeds))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(page, table(read())), encoding="utf-8")
    draw(read())
    return int(failures > 0)


def train_missing(wanted: Iterable[Run], path: pathlib.Path = CSV) -> int:
    """Does the runs that have no rows; returns the number of failures."""
    failures = 0
    for run in wanted:
        if {*run.keys()} <= {key_of(row) for row in read(path)}:
            continue
        try:
            made = train(run)
        except (peers.PeerError, processes.WorkerError) as error:
            failures += 1
            print(f"failed: {error}", file=sys.stderr, flush=True)
            continue
        # Another command may have written rows meanwhile.
        write([*(row for row in read(path) if not run.is_of(row)), *made], path)
        for row in made:
            print(", ".join(row[name] for name in _FIELDS[:9]), flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
