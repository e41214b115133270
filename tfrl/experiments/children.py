"""Trains runs in separate processes, as many at a time as there are processors.

Each has a folder and is an ordinary run, which resumes by itself, so the program can be
killed and started again. Its recipe is in recipe.json there, which
`python -m tfrl.experiments.children FILE` reads, its output in output.txt.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfrl.algorithms.recipe import Recipe
from tfrl.compilation import processors
from tfrl.experiments import single
from tfrl.system import files, interrupts, jobs, threads


class ChildRun(NamedTuple):
    """A run in its own process.

    Attributes:
      folder: Its folder.
      recipe: What it is made by.
      options: Arguments of `single.train`.
      module: The module of its program.
    """

    folder: pathlib.Path
    recipe: Recipe
    options: Mapping[str, Any]
    module: str = "tfrl.experiments.children"

    @property
    def output(self) -> pathlib.Path:
        """The file with its output."""
        return self.folder / "output.txt"

    def job(self) -> jobs.Job:
        """Writes its recipe, and returns its command."""
        path = self.folder.absolute() / "recipe.json"
        content = {"recipe": self.recipe.to_json(), "options": dict(self.options)}
        files.write_text(path, json.dumps(content, indent=2) + "\n")
        return jobs.Job(self.module, [str(path)], self.output)


def train_all(
    runs: Iterable[ChildRun],
    most: int,
    on_end: Callable[[int, int], None] = lambda *_: None,
    ends_early: Callable[[int], bool] = lambda _: False,
) -> list[int | None]:
    """Trains all runs, a limited number at a time; they end with this process.

    Runs at the same time share the processors; see `threads.hand_down`.

    Args:
      runs: The runs. A generator is asked for the next one when a process is free, so
        that it may depend on the runs that have ended.
      most: The largest number of processes at the same time.
      on_end: Called with the number and the exit status of each run that ends before
        this process is told to stop.
      ends_early: Returns whether the run with a given number should save and end now.

    Returns:
      The exit status of each run.

    Raises:
      KeyboardInterrupt: Ctrl-C was pressed; the runs have saved checkpoints.
      Terminated: SIGTERM or SIGHUP came; the same holds.
      NotImplementedError: On Windows.
    """
    threads.hand_down(max(1, processors.number() // most) if most > 1 else None)
    made: Iterable[jobs.Job] = (run.job() for run in runs)
    signals = interrupts.requested(interrupts.SIGNALS, lambda: "the runs")
    with signals as is_requested:

        def ended(number: int, status: int) -> None:
            # A run that was told to stop is not at its end.
            if not is_requested():
                on_end(number, status)

        statuses = jobs.run_all(made, most, is_requested, ended, ends_early=ends_early)
    if is_requested():
        interrupts.stop()
    return statuses


def check(runs: Sequence[ChildRun], statuses: Sequence[int | None]) -> None:
    """Raises a RuntimeError that names the runs that have failed.

    Args:
      runs: The runs.
      statuses: What `train_all` returned.
    """
    failed = [run for run, status in zip(runs, statuses, strict=True) if status]
    if failed:
        files = ", ".join(str(run.output) for run in failed)
        raise RuntimeError(
            f"{len(failed)} of {len(runs)} runs failed; the end of these files says "
            f"why: {files}. The same command tries them again."
        )


def main() -> None:
    """Trains the run of a recipe.json, in the folder of the file."""
    threads.set_up()
    path = pathlib.Path(sys.argv[1])
    job = json.loads(path.read_text(encoding="utf-8"))
    recipe = Recipe.from_json(job["recipe"])
    result = single.train(recipe, path.parent, **job["options"])
    if result is not None and not (result.finished or result.stopped_by):
        sys.exit(interrupts.exit_status())


if __name__ == "__main__":
    main()
