"""Trains the run of a recipe.json: `python -m tfrl.experiments.child FILE`."""

from __future__ import annotations

import json
import pathlib
import sys

from tfrl.algorithms import registry
from tfrl.experiments import single
from tfrl.system import interrupts, threads


def main() -> None:
    """Trains it in the folder of the file."""
    threads.set_up()
    path = pathlib.Path(sys.argv[1])
    recipe = json.loads(path.read_text(encoding="utf-8"))
    algorithm = registry.algorithm_of(recipe["config"], logdir=path.parent)
    result = single.train(algorithm, **recipe["options"])
    if result is not None and not (result.finished or result.stopped_by):
        sys.exit(interrupts.exit_status())


if __name__ == "__main__":
    main()
