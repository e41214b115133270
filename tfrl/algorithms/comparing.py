"""Reads the folders of runs, and compares the runs by the settings that differ."""

from __future__ import annotations

import glob
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfrl.algorithms import registry, run_folders
from tfrl.reports import comparison
from tfrl.train.runs import finished_runs, run_files

# Fields that do not change what a run learns, or that say which run it is.
_ASIDE = {"algorithm", "checkpoint_interval", "device", "env", "seed"}
_ASIDE |= {"eval_interval", "log_interval", "num_eval_episodes"}


class _Run(NamedTuple):
    """A run in a folder: its algorithm, environment, settings and evaluations."""

    algorithm: str
    environment: str
    settings: dict[str, str]
    curve: comparison.Curve


def compare(
    *folders: str | os.PathLike[str],
    metric: str = "evaluation_return",
    normalize: Mapping[str, tuple[float, float]] | None = None,
) -> comparison.Comparison:
    """Compares runs, grouped by the algorithm and the settings that differ.

    ```python
    compared = tfrl.compare("logs/ppo_*", "logs/sac_Pendulum-v1_*")
    print(compared)
    compared.write("logs/compared")
    ```

    Each environment is a task. The runs are compared at the steps that all runs of a
    task have reached.

    Args:
      *folders: The folders of runs, or of sweeps, or that hold such folders; or
        patterns of their names.
      metric: The column of metrics.csv to compare; the higher the better.
      normalize: See `reports.comparison.compare`.

    Raises:
      FileNotFoundError: There is no run in a folder.
      ValueError: A file cannot be read, or no run has the metric.
    """
    paths = [path for folder in folders for path in _find(os.fspath(folder))]
    read = {path: _read(path, metric) for path in dict.fromkeys(paths)}
    runs = [run for run in read.values() if run is not None]
    empty = [str(path) for path, run in read.items() if run is None]
    if not runs:
        rows = (x for p in read for x in run_files.read_metrics(p / "metrics.csv"))
        columns = dict.fromkeys(name for row in rows for name, x in row.items() if x)
        raise ValueError(
            f"metric: got {metric!r}, which none of {len(paths)} runs has, expected a "
            f"column of metrics.csv with numbers: {', '.join(columns) or 'none yet'}; "
            "the first evaluation may be to come."
        )
    names = [run.curve.name for run in runs]
    unfinished = [x for x in names if not pathlib.Path(x, finished_runs.NAME).exists()]
    notes = [f"Not finished: {', '.join(unfinished)}."] if unfinished else []
    notes += [f"Left out, without {metric}: {', '.join(empty)}."] if empty else []
    groups: dict[str, dict[str, list[comparison.Curve]]] = {}
    for name, run in zip(_names(runs), runs, strict=True):
        tasks = groups.setdefault(name, {})
        tasks.setdefault(run.environment, []).append(run.curve)
    title = metric.replace("_", " ")
    return comparison.compare(groups, metric=title, normalize=normalize, notes=notes)


def _find(pattern: str) -> list[pathlib.Path]:
    """Returns the folders of the runs that a folder or a pattern names."""
    found: list[pathlib.Path] = []
    for word in sorted(glob.glob(pattern)):
        places = (".", "runs/*", "*", "*/runs/*")
        inner = [sorted(pathlib.Path(word).glob(f"{x}/metrics.csv")) for x in places]
        found += [path.parent for path in next(filter(None, inner), [])]
    if not found:
        path = pathlib.Path(pattern)
        if not (glob.has_magic(pattern) or (path / "config.json").exists()):
            run_files.check_run(path)
        raise FileNotFoundError(
            f"folders: got {pattern!r}, where there is no run with a metrics.csv, "
            "expected a folder with one, or a pattern such as 'logs/ppo_*'; a run has "
            "one after its first evaluation."
        )
    return found


def _read(path: pathlib.Path, metric: str) -> _Run | None:
    """Returns a run; None if it has not been evaluated yet."""
    rows = run_files.read_metrics(path / "metrics.csv")
    rows = [row for row in rows if row.get(metric)]
    if not rows:
        return None
    names = "environment_steps", "train_steps", "training_seconds", metric
    numbers = run_files.numbers(path / "metrics.csv", rows, names, empty="0")
    if not np.isfinite(numbers).all():
        wrong = names[int(np.argmin(np.isfinite(numbers).all(axis=0)))]
        raise run_files.RunDirectoryError(
            f"{path / 'metrics.csv'}: got a number in the column {wrong} that is not "
            "finite, expected finite ones; leave the run out, or evaluate its policy "
            "with an environment that bounds the returns."
        )
    steps, updates, seconds, scores = numbers.T
    # A run that learns from recordings steps no environment.
    curve = comparison.Curve(
        str(path), steps if steps.any() else updates, seconds, scores
    )
    config = run_folders.read(path)
    name = registry.name_of(config) or path.name
    if recipe := run_folders.recipe_in(path, config):
        config = recipe.to_json()
    named = json.loads(json.dumps(config))  # Defaults have tuples, files lists.
    settings = {k: str(x) for k, x in named.items() if k not in _ASIDE}
    return _Run(name, config.get("env") or "", settings, curve)


def _names(runs: Sequence[_Run]) -> list[str]:
    """Returns the name of each run's group: its algorithm, and settings that differ.

    Presets do not make groups; only settings that differ between runs of an algorithm
    on the same environment do. Of settings that differ together, such as a first and a
    last learning rate, the one with the shortest name is enough.
    """
    chosen: dict[str, list[str]] = {}
    for algorithm in {run.algorithm for run in runs}:
        own = [run for run in runs if run.algorithm == algorithm]
        fields = chosen[algorithm] = []
        for field in sorted({f for run in own for f in run.settings}, key=_length):
            if _number(own, [*fields, field]) > _number(own, fields):
                fields.append(field)
    return [
        " ".join(
            [run.algorithm]
            + [f"{field}={run.settings.get(field)}" for field in chosen[run.algorithm]]
        )
        for run in runs
    ]


def _length(field: str) -> tuple[int, str]:
    return len(field), field


def _number(runs: Sequence[_Run], fields: Sequence[str]) -> int:
    """Returns how many combinations of an environment and these settings there are."""
    return len({(run.environment, *map(run.settings.get, fields)) for run in runs})
