"""Trains the runs of the score table that are missing, and writes the table.

    python -m benchmarks.scores
    python -m benchmarks.scores --only=SAC --processes=2
    python -m benchmarks.scores --background
    python -m benchmarks.scores --verify=ppo_ppo_acrobot/0
    python -m benchmarks.scores --table

Each run is an ordinary run, in a process of its own with one thread. Its
score is the mean return of greedy episodes of its final weights, which begin in other
states for each seed. A row of benchmarks/scores.csv, and one of
benchmarks/score_curves.csv with its evaluations and the returns of these episodes, is
written when its run ends. So an interrupted command goes on where it was, and a run is
trained again only if its settings have changed, or if its row says in the column
`again` why. At the end docs/scores.md and its pictures are made from both files;
--table does only that. --background trains one run at a time, at the lowest priority,
and stands still while something is timed (see `benchmarks.timing`). --verify trains
runs that have a row once more, and compares. Most runs with --portable can be
repeated bit for bit on x86 processors with AVX2, and their rows say so among the
versions.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import os
import pathlib
import platform
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata

import numpy as np

from benchmarks import commits, score_curves, score_recordings, score_table, timing
from benchmarks.score_entries import (
    ENTRIES,
    LOGS,
    QUEUE,
    RECORDINGS,
    ROOT,
    Entry,
)
from tfrl.algorithms.recipe import Recipe
from tfrl.compilation import processors
from tfrl.environments import suites
from tfrl.experiments import children
from tfrl.system import interrupts, jobs, portable, quiet
from tfrl.train.runs import run_files

CSV = ROOT / "benchmarks" / "scores.csv"
_FIELDS = (
    "agent",
    "environment",
    "preset",
    "seed",
    "steps",
    "return",
    "episodes",
    "seconds",
    "config_hash",
    "commit",
    "processor",
    "processor_seconds",
    "versions",
    "checksum",
    "again",
    "resumed",
)
# How `resumed` begins in the row of a run that differs from one without interruption.
_RESUMED_WITHOUT = "without "
# Packages whose versions a row names: of all rows, and of kinds of environments.
_PACKAGES = ("tensorflow", "keras", "numpy", "gymnasium")
_PACKAGES_OF = {
    "Box2D": ("box2d",),
    "MuJoCo": ("mujoco",),
    "dm_control": ("dm-control", "mujoco"),
    "MiniGrid": ("minigrid",),
    "MinAtar": ("jax", "gymnax"),
    "NAVIX": ("jax", "navix"),
    "Exploration": ("bsuite",),
}
_PORTABLE = "portable"
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}
_FIRST_START = 123_456
_STARTS = 10_000  # From a seed's starts to the next one's; more than its episodes.


@dataclasses.dataclass(frozen=True)
class Parts:
    """The processes that have trained a run, one after the other.

    Attributes:
      processor_seconds: The processor time of training and evaluating, of all of them.
      earlier_seconds: The same of all but the last.
      is_resumed: Whether there is more than one.
      lacking: The parts of the run's state that a checkpoint lacked.
    """

    processor_seconds: float
    earlier_seconds: float = 0.0
    is_resumed: bool = False
    lacking: Sequence[str] = ()

    def seconds(self, last: float) -> float:
        """Returns the processor time of all processes.

        Args:
          last: The processor time of the process that ended last, with its start and
            outputs. It may only have found that the run is finished.
        """
        return max(self.processor_seconds, self.earlier_seconds + last)

    def text(self) -> str:
        """Returns the text of the column `resumed`."""
        if not self.lacking:
            return "yes" if self.is_resumed else "no"
        return _RESUMED_WITHOUT + " and ".join(self.lacking)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of an entry.

    Attributes:
      entry: The entry.
      seed: The seed.
      logs: Where the folder of its outputs is.
      is_again: Whether it has a row already, which it is to replace.
      has_own_starts: Whether its final episodes begin in states of its own. In rows
        without the returns of these episodes, all seeds have the same.
    """

    entry: Entry
    seed: int
    logs: pathlib.Path = LOGS
    is_again: bool = False
    has_own_starts: bool = True

    @property
    def folder(self) -> pathlib.Path:
        """Where its outputs are."""
        return self.entry.folder(self.seed, self.logs)

    def child(self) -> children.ChildRun:
        """Returns the process that trains it."""
        recipe = Recipe.from_json({**self.entry.settings(), "seed": self.seed})
        return children.ChildRun(self.folder, recipe, {})

    def seed_of_starts(self) -> int:
        """Returns the seed of the environments of its final episodes.

        Each environment of a batch takes a seed of its own from there on.
        """
        return _FIRST_START + _STARTS * self.seed * self.has_own_starts

    def key(self) -> score_curves.Key:
        """The fields that identify its row."""
        entry = self.entry
        return entry.agent, entry.preset, entry.hash(), str(self.seed)

    def remove_outputs_of_its_row(self) -> None:
        """Removes its outputs if its row was made from them."""
        if self.is_again and (self.folder / "finished.json").exists():
            shutil.rmtree(self.folder)

    def parts(self) -> Parts:
        """Returns what its log says about its parts, one per process."""
        rows = run_files.read_rows(self.folder / "diagnostics.jsonl")
        # The first row of each process names versions.
        last_begin = max(i for i, row in enumerate(rows) if "versions" in row)
        earlier = rows[last_begin - 1]["processor_seconds"] if last_begin else 0.0
        lacking = [row["resumed_without"] for row in rows if "resumed_without" in row]
        return Parts(
            processor_seconds=rows[-1]["processor_seconds"],
            earlier_seconds=earlier,
            is_resumed=bool(lacking),
            lacking=sorted(set(itertools.chain(*lacking))),
        )


def read_rows(path: pathlib.Path = CSV) -> list[dict[str, str]]:
    """Returns the rows of the table, as text."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [
            {name: row.get(name) or "" for name in _FIELDS}
            for row in csv.DictReader(file)
        ]


def write_rows(rows: Iterable[dict[str, str]], path: pathlib.Path = CSV) -> None:
    """Writes the table, in the order of the entries and seeds."""
    order = [(entry.agent, entry.preset, entry.hash()) for entry in ENTRIES]

    def place(row: Mapping[str, str]) -> tuple[int, int]:
        name = row["agent"], row["preset"], row["config_hash"]
        return order.index(name) if name in order else len(order), int(row["seed"])

    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=place))
    os.replace(partial, path)


def missing(entries: Sequence[Entry], rows: Iterable[dict[str, str]]) -> Iterator[Run]:
    """Yields the runs of the entries that have no row, or one that says `again`."""
    again = {score_curves.key_of(row): row["again"] for row in rows}
    for entry in entries:
        for seed in range(entry.num_seeds):
            run = Run(entry, seed)
            reason = again.get(run.key())
            if reason is None:
                yield run
            elif reason:
                yield dataclasses.replace(run, is_again=True)


def score(
    run: Run, commit: str, last_seconds: float
) -> tuple[dict[str, str], np.ndarray]:
    """Plays greedy episodes of a run's final weights.

    Returns its row, and the return of each episode.

    Args:
      run: The run, which has ended.
      commit: The commit of the code that trained it.
      last_seconds: The processor time of the process that ended last.
    """
    import tensorflow as tf  # Not at the top: --table does not wait for it.

    from tfrl import environments
    from tfrl import eval as evaluation
    from tfrl.policies.saving import weights

    settings = run.entry.settings()
    name = settings["env"]
    environment: environments.TFEnvironment
    dynamics = suites.find_dynamics(name)
    if dynamics is not None:
        episodes = 1000
        native = environments.native
        environment = native.NativeEnvironment(dynamics, episodes, run.seed_of_starts())
    else:
        episodes = 20 if name.startswith("dm_control/") else 50
        world = Recipe.from_json(settings).make().world
        environment = world.make_evaluation(episodes, run.seed_of_starts())
    final_policy = run.folder / "final_policy"
    policy = tf.saved_model.load(str(final_policy))
    result = evaluation.Evaluator(environment, policy, episodes, _FIRST_START).run()
    with open(run.folder / "metrics.csv", newline="", encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    parts = run.parts()
    row = {
        "agent": run.entry.agent,
        "environment": name,
        "preset": run.entry.preset,
        "seed": str(run.seed),
        "steps": str(score_curves.steps_of(last)),
        "return": score_table.return_text(result.mean),
        "episodes": str(episodes),
        "seconds": f"{float(last['training_seconds']):.0f}",
        "config_hash": run.entry.hash(),
        "commit": commit,
        "processor": processors.description(),
        "processor_seconds": f"{parts.seconds(last_seconds):.0f}",
        "versions": versions(score_table.family_of(run.entry)),
        "checksum": weights.checksum(weights.read(final_policy)),
        "again": "",
        "resumed": parts.text(),
    }
    return row, result.returns


def versions(family: str) -> str:
    """Returns the versions of Python and of the packages that numbers depend on.

    The last word says whether the process is portable.

    Args:
      family: The kind of environment, as in `score_entries.FAMILIES`.
    """
    names = (*_PACKAGES, *_PACKAGES_OF.get(family, ()))
    found = (f"{name} {metadata.version(name)}" for name in names)
    kind = [_PORTABLE] * portable.is_on()
    return " ".join([f"python {platform.python_version()}", *found, *kind])


def train(
    runs: Sequence[Run],
    processes: int,
    on_row: Callable[[Run, dict[str, str], np.ndarray], None],
    is_paused: Callable[[], bool],
) -> None:
    """Trains and scores the runs.

    Args:
      runs: The runs.
      processes: The number of runs at a time.
      on_row: Called with each run that has ended, its row, and the return of each
        final episode.
      is_paused: Returns whether the runs are to stand still for now.

    Raises:
      KeyboardInterrupt: Ctrl-C or SIGTERM came; the runs have saved checkpoints.
      RuntimeError: A run failed.
    """
    os.environ.update(_ONE_THREAD)
    # The shell must not choose the kernels, since other kernels round differently.
    os.environ.pop("TF_ENABLE_ONEDNN_OPTS", None)
    commit = commits.current_commit()
    failed = []
    used = 0.0

    def ended(number: int, status: int) -> None:
        nonlocal used
        run = runs[number]
        before, used = used, _seconds_of_children()
        if status != 0:
            failed.append(run.child().output)
            return
        row, finals = score(run, commit, used - before)
        on_row(run, row, finals)
        print(
            f"{_name_of(row)}: {row['return']} in {row['processor_seconds']} s",
            flush=True,
        )

    for run in runs:
        run.remove_outputs_of_its_row()
    made = [run.child().job() for run in runs]
    signals = interrupts.requested((signal.SIGINT, signal.SIGTERM), lambda: "the runs")
    with signals as is_requested:
        wanted = {run.entry.changes.get("data") for run in runs}
        for recording in RECORDINGS:
            if recording.source in wanted and not recording.path.exists():
                score_recordings.make(recording, is_requested)
        used = _seconds_of_children()
        jobs.run_all(made, processes, is_requested, ended, is_paused=is_paused)
    if is_requested():
        raise KeyboardInterrupt
    if failed:
        raise RuntimeError(
            f"{len(failed)} runs failed; the end of these files says why: "
            f"{', '.join(map(str, failed))}. The same command tries them again."
        )


def _seconds_of_children() -> float:
    """Returns the processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chosen(only: str | None) -> list[Entry]:
    """Returns the entries that a command is about, in the order of the queue.

    Raises:
      ValueError: No entry has that name.
    """
    entries = [entry for entry in QUEUE if only is None or only in entry.names()]
    if not entries:
        names = ", ".join(sorted({entry.agent for entry in ENTRIES}))
        raise ValueError(
            f"got {only!r}, expected one of {names}, the name of an environment, of a "
            f"preset, or of an entry, such as {ENTRIES[0].name}"
        )
    return entries


def verdict(
    row: Mapping[str, str], new: Mapping[str, str], rows: Sequence[Mapping[str, str]]
) -> tuple[bool, str]:
    """Compares a run that was trained once more with its row.

    On the same kind of processor and the same versions, and on all processors if both
    runs are portable, the returns and the final weights must be equal. Elsewhere, also
    where a row does not say where it ran, a run may be another draw: unless its return
    is the same, it must lie within three standard deviations (at least 1 % of the mean)
    of the mean of the row's runs. One run has no deviation, so another draw cannot be
    compared with it, and the row counts as not verified. So does a row whose run, or
    the new one, was resumed without a part of its state, such as the environment's,
    because no other run repeats it.

    Args:
      row: The row of the table.
      new: The row of the new run.
      rows: The rows of all seeds of the entry.

    Returns:
      Whether it is as it should be, and a sentence that says so.
    """
    name = _name_of(row)
    if text := _not_repeatable("the row's run", row) or _not_repeatable("the run", new):
        return False, text
    both = f"{row['return']} in the table, {new['return']} now"
    where = ["versions"] + ["processor"] * (not _is_portable(row))
    if all(row[field] == new[field] for field in where):
        is_same = all(row[field] == new[field] for field in ("return", "checksum"))
        words = "the same" if is_same else "not the same"
        text = f"{name}: {both}; the final weights and the return are {words}."
        if not (is_same or row["resumed"]):
            text += (
                " The row does not say whether its run was resumed, and one that was "
                "resumed without the state of its environment cannot be repeated."
            )
        return is_same, text
    elsewhere = f"{name}: {both}, on another processor or with other versions"
    if row["return"] == new["return"]:
        are_same = row["checksum"] == new["checksum"]
        words = "and the final weights " * are_same
        return True, f"{elsewhere}; the returns {words}are the same."
    if len(rows) == 1:
        return False, f"{elsewhere}; the row's one run has no deviation to compare by."
    returns = [float(other["return"]) for other in rows]
    mean = float(np.mean(returns))
    reach = max(3 * float(np.std(returns, ddof=1)), abs(mean) / 100)
    is_within = abs(float(new["return"]) - mean) <= reach
    side = "within" if is_within else "outside"
    low, high = map(score_table.return_text, (mean - reach, mean + reach))
    return is_within, f"{elsewhere}; {side} {low} to {high}."


def _name_of(row: Mapping[str, str]) -> str:
    return f"{row['agent']} on {row['environment']}, seed {row['seed']}"


def _is_portable(row: Mapping[str, str]) -> bool:
    return row["versions"].split()[-1:] == [_PORTABLE]


def _not_repeatable(which: str, row: Mapping[str, str]) -> str:
    """Returns why a row cannot be compared bit for bit; empty if it can."""
    if not row["resumed"].startswith(_RESUMED_WITHOUT):
        return ""
    return (
        f"{_name_of(row)}: cannot be verified; {which} was resumed "
        f"{row['resumed']}, whose state its checkpoint lacks, and so it differs from "
        "a run that is not interrupted. Train it again without a pause: put a reason "
        "into the column `again` of its row."
    )


def verify(
    name: str,
    rows: Sequence[dict[str, str]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
    processes: int,
) -> int:
    """Trains an entry's runs that have rows once more; returns the exit status.

    Args:
      name: The entry's name, perhaps with a seed.
      rows: The rows of the table.
      curves: The evaluations of runs, and the returns of the final episodes of some.
      processes: The number of runs at a time.

    Raises:
      ValueError: No run of that name has a row, or one is portable and this process is
        not.
    """
    name, _, seed = name.partition("/")
    with_finals = {key for key, curve in curves.items() if curve.finals.size}
    old = {
        Run(
            entry,
            int(row["seed"]),
            LOGS.parent / "verify",
            has_own_starts=score_curves.key_of(row) in with_finals,
        ): row
        for entry in chosen(name)
        for row in rows
        if entry.has(row) and seed in ("", row["seed"])
    }
    if not old:
        raise ValueError(
            f"got {name}/{seed}, expected an entry, or ENTRY/SEED, with rows"
        )
    if any(map(_is_portable, old.values())) and not portable.is_on():
        raise ValueError(
            f"got {name}, a portable run, and this process is not; give --portable"
        )
    results = []
    for run, row in list(old.items()):
        if text := _not_repeatable("the row's run", row):
            results.append(False)
            print(text, flush=True)
            del old[run]

    def compare(run: Run, new: dict[str, str], _: np.ndarray) -> None:
        own = [other for other in rows if run.entry.has(other)]
        is_good, text = verdict(old[run], new, own)
        results.append(is_good)
        print(text, flush=True)
        shutil.rmtree(run.folder)

    train(list(old), processes, compare, timing.is_going_on)
    return int(not all(results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Does the missing runs and makes the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scores", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--only",
        help="an agent, an environment, a preset, or an entry",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=processors.number(),
        help="runs at a time",
    )
    parser.add_argument(
        "--background", action="store_true", help="one run, at the lowest priority"
    )
    parser.add_argument(
        "--verify", metavar="ENTRY[/SEED]", help="train it again, and compare"
    )
    parser.add_argument(
        "--table", action="store_true", help="train nothing, only make the page"
    )
    parser.add_argument(
        "--portable",
        action="store_true",
        help="round alike on other processors",
    )
    options = parser.parse_args(arguments)
    if options.portable and not portable.is_on():
        portable.start_again()
    rows, curves = read_rows(), score_curves.read()
    if options.background:
        os.nice(19)
        options.processes = 1

    def add(run: Run, row: dict[str, str], finals: np.ndarray) -> None:
        rows[:] = [other for other in rows if score_curves.key_of(other) != run.key()]
        rows.append(row)
        curve = score_curves.of_run(run.folder)
        curves[run.key()] = dataclasses.replace(curve, finals=finals)
        score_curves.write(curves)
        write_rows(rows)

    try:
        if options.verify:
            quiet.quieten_tensorflow()
            return verify(options.verify, rows, curves, options.processes)
        if not options.table:
            runs = list(missing(chosen(options.only), rows))
            print(f"{len(runs)} runs are missing.", flush=True)
            quiet.quieten_tensorflow()
            train(runs, options.processes, add, timing.is_going_on)
    except ValueError as error:
        parser.error(f"{'--verify' if options.verify else '--only'}: {error}")
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on.")
        return 130
    score_table.write(ENTRIES, rows, curves, LOGS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
