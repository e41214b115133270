"""Trains many runs of an algorithm: in one program where possible, else in processes.

A run of a sweep in one program has a folder like other runs, so that it can be
compared, played and evaluated in the same way. It has no film and no separate
checkpoint, and its policy is the last one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tfrl import train
from tfrl.algorithms import run_folders
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import one_program
from tfrl.system import log


class Member(NamedTuple):
    """A run of a sweep.

    Attributes:
      folder: Its folder.
      recipe: What it is made by.
    """

    folder: pathlib.Path
    recipe: Recipe


def why_in_processes(recipe: Recipe) -> str:
    """Returns why runs need separate processes; empty if one program suffices.

    Args:
      recipe: The recipe of a run.
    """
    why = one_program.obstacle(recipe.make(), recipe.environment, ())
    if not why and recipe.initial_run:
        return "they begin with another run's weights"
    return why


def programs(members: Sequence[Member]) -> list[list[Member]]:
    """Divides runs among programs, whose runs differ in seeds and live settings."""
    found: dict[str, list[Member]] = {}
    for member in members:
        own = ("seed", *_live(member.recipe))
        fields = member.recipe.to_json()
        shared = {k: x for k, x in fields.items() if k not in own}
        found.setdefault(json.dumps(shared, sort_keys=True), []).append(member)
    return list(found.values())


def _live(recipe: Recipe) -> set[str]:
    """Returns the settings in which runs of a program with this one may differ."""
    live = recipe.algorithm.live_settings()
    return {name for name in live if recipe.settings[name] is not None}


@contextlib.contextmanager
def folder_of(
    folder: pathlib.Path,
    recipe: Recipe,
    swept: Collection[str],
    members: Sequence[Member],
    overwrite: bool,
) -> Iterator[None]:
    """Keeps the folder of a sweep for this sweep and this process.

    It holds runs that differ in seeds and in the swept settings alone. They may become
    longer if none is left behind. If no run came to be, a new folder is removed.

    Args:
      folder: The folder.
      recipe: What all runs have, and their length.
      swept: The names of the settings in which they differ.
      members: The runs.
      overwrite: Whether to remove the outputs of an earlier sweep first.

    Raises:
      RunDirectoryError: The folder belongs to another sweep.
    """
    is_new, names = not folder.exists(), {member.folder.name for member in members}
    # Swept settings change the number of iterations of so many steps.
    derived = ["num_iterations"] if recipe.num_environment_steps else []
    fields = recipe.to_json()
    own = {k: x for k, x in fields.items() if k not in ("seed", *swept, *derived)}
    others = {path.name for path in (folder / "runs").glob("*")} - names
    directory = run_folders.open_fields(
        folder,
        {"program": "sweep", "swept": sorted(swept), **own},
        overwrite=overwrite,
        may_grow=() if others else ("num_iterations", "num_environment_steps"),
        further_outputs=("compare.md", "compare.csv", "compare.png", "programs"),
    )
    directory.lock()
    try:
        directory.grow()
        yield
    except Exception:
        if is_new and not (folder / "runs").exists():
            directory.unlock()  # Windows removes no open file.
            shutil.rmtree(folder)
        raise
    finally:
        directory.unlock()


def train_in_one_program(members: Sequence[Member], checkpoints: pathlib.Path) -> None:
    """Trains runs that differ in seeds and live settings as one program.

    Each gets its outputs at the end. A sweep that was killed continues from its last
    checkpoint, and finished runs are left as they are.

    Args:
      members: The runs, which `programs` has put together.
      checkpoints: The folder of the checkpoints of sweeps.

    Raises:
      KeyboardInterrupt: Ctrl-C was pressed; the sweep has saved a checkpoint.
      Terminated: SIGTERM or SIGHUP came; the same holds.
      RunDirectoryError: A folder belongs to another run.
      ValueError: A setting is wrong.
    """
    recipe = members[0].recipe
    first = recipe.settings
    differing = {
        name
        for name in _live(recipe)
        if any(each.settings[name] != first[name] for _, each in members)
    }
    make_loop = functools.partial(_make_loop, recipe, differing)
    if not (members[0].folder / "config.json").exists():
        make_loop()  # Wrong settings show here, before a folder is made.
    missing = []
    for folder, each in members:
        place = run_folders.open_folder(folder, each)
        if place.finished_iteration() is None:
            missing.append((place, each.settings))
    if not missing:
        return
    names = json.dumps([place.path.name for place, _ in missing])
    program = checkpoints / hashlib.sha256(names.encode()).hexdigest()[:12]
    swept = {name: [own[name] for _, own in missing] for name in differing}
    with train.device_scope(first["device"]):
        result = train.sweep(
            make_loop,
            [own["seed"] for _, own in missing],
            swept,
            num_iterations=first["num_iterations"],
            eval_interval=first["eval_interval"],
            num_eval_episodes=first["num_eval_episodes"],
            callback=Progress(first["num_iterations"]),
            directory=program,
            checkpoint_interval=first["checkpoint_interval"],
        )
    if pace := result.pace():
        steps = result.environment_steps[:, -1].sum() / first["num_iterations"]
        log.info(f"{steps / pace:,.0f} environment steps a second, all together.")
        log.info(about_seconds(result.seconds))
    for number, (place, _) in enumerate(missing):
        place.grow()
        # The seconds of each run are its share of the program's.
        result.write_metrics(number, place.metrics_csv, pace / len(result.seeds))
        if np.isfinite(result.losses[number, -1]):
            result.save_policy(number, place.policy)
        else:
            log.info(f"{place.path}: diverged, and has no policy.")
    for place, _ in missing:
        place.mark_finished(first["num_iterations"])


def _make_loop(
    recipe: Recipe,
    differing: Collection[str],
    seed: int = 0,
    **values: float,
) -> train.TrainingLoop:
    """Makes one run's loop: a recipe with another seed and other values."""
    settings = {**recipe.settings, "seed": seed, **values}
    own = dataclasses.replace(recipe, settings=settings)
    return one_program.make_loop(own, differing, recipe.environment)


class Progress:
    """Prints a line for each evaluation of a sweep."""

    def __init__(self, num_iterations: int) -> None:
        """Starts the clock; for the argument see `train.sweep`."""
        self._num_iterations, self._started = num_iterations, time.monotonic()

    def __call__(self, iteration: int, returns: np.ndarray) -> None:
        """Prints the iteration, the time and a summary of `returns`, `[N]`."""
        log.info(
            f"iteration {iteration:,} of {self._num_iterations:,}, "
            f"{time.monotonic() - self._started:.0f} s: {summary(returns)}"
        )


def about_seconds(seconds: np.ndarray) -> str:
    """Returns whether the seconds of the runs hold the compilation, as text.

    Args:
      seconds: See `SweepResult`, whose `pace` leaves out the longest ones.
    """
    holds = np.isfinite(seconds).sum() < 2
    verb = "include" if holds else "leave out"
    return f"The seconds of the runs {verb} the compilation."


def summary(returns: np.ndarray) -> str:
    """Returns the median and the quartiles of the runs' returns as text."""
    low, median, high = np.quantile(returns, (0.25, 0.5, 0.75))
    return f"median return {median:.1f} (quartiles {low:.1f} and {high:.1f})"
