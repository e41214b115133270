"""Trains a run again, and compares the final weights of both.

The weights are those of the final policy, without what only training needs: any
difference in an optimizer or a critic reaches them at the next update.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.algorithms import run_folders
from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import children, single
from tfrl.system import log, portable
from tfrl.train.runs import run_files

# What a run says of its place, and no number depends on.
_NO_CAUSES = ("commit", "system", "tfrl")
# What does not change the weights, and takes time.
_OPTIONS = {"films": False, "reports": False, "shows_progress": False}
_MOST_NAMED = 3  # Variables that differ.


class Verdict(NamedTuple):
    """What became of a run that was trained again.

    Attributes:
      is_same: Whether all weights have the same bits.
      text: Sentences that say so, and where both runs were made.
    """

    is_same: bool
    text: str


def verify(folder: pathlib.Path, most_hours: float) -> Verdict:
    """Trains the run in a folder again, in another process and another folder.

    The process is portable if the run was.

    Args:
      folder: The folder of a run that has ended.
      most_hours: The hours after which the process is ended.

    Raises:
      ValueError: The run cannot be repeated, or a setting is wrong, or its outputs
        cannot be read.
      RuntimeError: The process failed, or took too long.
      NotImplementedError: On Windows.
    """
    found = run_folders.find_recipe(folder)
    begun = _beginnings(folder)
    recipe = check_repeatable(folder, found, begun)
    with run_folders.naming(folder):
        single.check_environment(recipe.make())
    length = recipe.length
    log.info(f"Training again for {length.total:,} {length.unit} ...")
    if "portable" in begun[0]["versions"]:
        os.environ[portable.VARIABLE] = "1"  # Of the child alone: this is too late.
    with tempfile.TemporaryDirectory(prefix="tfrl-verify-") as scratch:
        run = children.ChildRun(pathlib.Path(scratch, "run"), recipe, _OPTIONS)
        why = _train_again(run, most_hours)
        if why:
            raise RuntimeError(
                f"folder: got {str(folder)!r}, which could not be trained again: {why}"
            )
        new = _beginnings(run.folder)
        differing = differences(folder / "final_policy", run.folder / "final_policy")
    grown = [row["grown"] for row in begun if "grown" in row]
    return verdict(folder, differing, begun[0]["versions"], new[0]["versions"], grown)


def check_repeatable(
    folder: pathlib.Path, recipe: Recipe | None, begun: Sequence[Mapping[str, Any]]
) -> Recipe:
    """Returns the recipe of a run, if the run can be repeated.

    Args:
      folder: Its folder.
      recipe: Its recipe; None if its configuration names no algorithm.
      begun: The rows of its log with which its processes began.

    Raises:
      ValueError: It cannot be repeated.
    """
    why = ""
    if not (folder / "finished.json").exists():
        why = "it has not ended; the command that began it goes on with it"
    elif not begun:
        why = (
            "its diagnostics.jsonl does not say how it began, as that of a run that "
            "tfrl sweep trained in one program with others; verify a run of tfrl train"
        )
    elif recipe is None:
        why = "its config.json names no algorithm of tfrl"
    elif recipe.own_parts:
        why = (
            f"it has parts of a program's own ({recipe.own_parts}); run the program "
            "again"
        )
    elif recipe.actors:
        why = "its actors were processes of their own; give its command again"
    elif lacking := [x for row in begun for x in row.get("resumed_without", ())]:
        why = f"it was resumed without {' and '.join(sorted(set(lacking)))}"
    elif len({"portable" in row["versions"] for row in begun}) > 1:
        why = "only some of the processes that trained it were portable"
    if why or recipe is None:
        raise ValueError(
            f"folder: got {str(folder)!r}, expected a run that can be repeated, but "
            f"{why}."
        )
    return recipe


def differences(
    old: pathlib.Path, new: pathlib.Path
) -> dict[str, tuple[tuple[int, ...], float]]:
    """Returns the shapes and the largest differences of variables that differ.

    Args:
      old: The folder of a saved policy.
      new: The folder of another one, with the same variables.

    Raises:
      ValueError: One of them cannot be read, or they have other variables.
    """
    from tfrl.policies.saving import weights  # Not at the top: --help does not wait.

    before, after = weights.read(old), weights.read(new)
    shapes = [{name: x.shape for name, x in each.items()} for each in (before, after)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"folder: the variables of {str(old)!r} have other names or shapes than "
            "those of the run trained again; verify it with the tfrl that made it."
        )
    return {
        name: (value.shape, float(np.max(np.abs(value - after[name]), initial=0)))
        for name, value in before.items()
        if value.tobytes() != after[name].tobytes()
    }


def verdict(
    folder: pathlib.Path,
    differing: Mapping[str, tuple[tuple[int, ...], float]],
    old: Mapping[str, str],
    new: Mapping[str, str],
    grown: Sequence[Mapping[str, Sequence[int]]] = (),
) -> Verdict:
    """Says what a comparison has found.

    Args:
      folder: The folder of the run.
      differing: See `differences`.
      old: The versions that the run says it was made with.
      new: The same of the run trained again.
      grown: The lengths of the run that were changed, each time: before and after.
    """
    kind = "portable" if "portable" in old else "not portable"
    made = f"The run was {kind} and made on {old.get('processor', 'an unnamed one')}"
    if not differing:
        here = f"trained again on {new['processor']}"
        return Verdict(True, f"{folder}: the same final weights, {here}. {made}.")
    named = [
        f"{name} {list(shape)} by {largest:.2g}"
        for name, (shape, largest) in list(differing.items())[:_MOST_NAMED]
    ]
    more = len(differing) - len(named)
    words = ", ".join(named) + f" and {more} more" * bool(more)
    changed = [
        f"{name} {old.get(name, 'none')}, now {new.get(name, 'none')}"
        for name in sorted(old.keys() | new.keys())
        if name not in _NO_CAUSES and old.get(name) != new.get(name)
    ]
    causes = f"; other than now: {'; '.join(changed)}" if changed else ", as now"
    text = f"{folder}: other final weights: {words} differ. {made}{causes}."
    for name, (before, after) in (two for each in grown for two in each.items()):
        text += (
            f" Its {name} was changed from {before:,} to {after:,} on the way, and "
            "with it the schedules that depend on it."
        )
    return Verdict(False, text)


def _train_again(run: children.ChildRun, most_hours: float) -> str:
    """Trains a run; returns why it has not come to its end, if it has not."""
    end = time.monotonic() + 3600 * most_hours

    def is_late(_: int = 0) -> bool:
        return time.monotonic() > end

    [status] = children.train_all([run], 1, ends_early=is_late)
    if not status:
        return ""
    if is_late():
        return f"it takes more than {most_hours:g} hours; raise --max_hours."
    said = run.output.read_text(encoding="utf-8", errors="replace").split("\n")
    # After a traceback, this is the error.
    return next(filter(str.strip, reversed(said)), f"it ended with status {status}.")


def _beginnings(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows with which the processes of a run began its log."""
    rows = run_files.read_rows(folder / "diagnostics.jsonl")
    return [row for row in rows if "versions" in row]
