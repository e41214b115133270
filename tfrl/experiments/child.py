"""Trains the run of a recipe.json: `python -m tfrl.experiments.child FILE`."""

from __future__ import annotations

import json
import pathlib
import sys

from tfrl.algorithms.recipe import Recipe
from tfrl.experiments import single
from tfrl.system import interrupts, threads


def main() -> None:
    """Trains it in the folder of the file."""
    threads.set_up()
    path = pathlib.Path(sys.argv[1])
    job = json.loads(path.read_text(encoding="utf-8"))
    recipe = Recipe.from_json(job["recipe"])
    result = single.train(recipe, path.parent, **job["options"])
    if result is not None and not (result.finished or result.stopped_by):
        sys.exit(interrupts.exit_status())


if __name__ == "__main__":
    main()
