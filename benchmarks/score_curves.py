"""The evaluations during the runs of the score table, one line a run."""

from __future__ import annotations

import csv
import dataclasses
import os
import pathlib
from collections.abc import Mapping

import numpy as np

from benchmarks.score_entries import ROOT

CSV = ROOT / "benchmarks" / "score_curves.csv"
_FIELDS = ("agent", "preset", "config_hash", "seed", "steps", "returns", "finals")

# What identifies a run: its agent, preset, hash and seed, as in the table.
Key = tuple[str, str, str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The evaluations of one run.

    Attributes:
      steps: The environment steps before each, `[N]`; its updates if it learns from
        recordings.
      returns: The mean return of each, `[N]`.
      finals: The returns of the final policy's episodes, one for each start; empty for
        runs whose row is older than this field. A run's starts are its own.
    """

    steps: np.ndarray
    returns: np.ndarray
    finals: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))


def of_run(folder: pathlib.Path) -> Curve:
    """Returns the evaluations that are written in a run's folder."""
    with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["evaluation_return"]]
    return Curve(
        np.array([steps_of(row) for row in rows]),
        np.array([float(row["evaluation_return"]) for row in rows]),
    )


def steps_of(row: Mapping[str, str]) -> int:
    """Returns a run's environment steps; its updates if it learns from recordings."""
    return int(row["environment_steps"]) or int(row.get("train_steps", 0))


def key_of(row: Mapping[str, str]) -> Key:
    """Returns what identifies the run of a row, of this table or of the scores."""
    return row["agent"], row["preset"], row["config_hash"], row["seed"]


def read(path: pathlib.Path = CSV) -> dict[Key, Curve]:
    """Returns all curves."""
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {
            key_of(row): Curve(
                np.array([int(word) for word in row["steps"].split()]),
                np.array([float(word) for word in row["returns"].split()]),
                np.array([float(word) for word in (row.get("finals") or "").split()]),
            )
            for row in csv.DictReader(file)
        }


def write(curves: Mapping[Key, Curve], path: pathlib.Path = CSV) -> None:
    """Writes all curves, in alphabetical order."""
    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_FIELDS)
        for key, curve in sorted(curves.items()):
            steps = " ".join(map(str, curve.steps))
            returns, finals = (
                " ".join(f"{value:.6g}" for value in values)
                for values in (curve.returns, curve.finals)
            )
            writer.writerow([*key, steps, returns, finals])
    os.replace(partial, path)
