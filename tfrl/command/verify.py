"""Trains a run again by its settings and its seed, and compares the final weights.

    tfrl verify logs/dqn_CartPole-v1_0

The same seed gives the same bits with the same versions on the same kind of processor.
Most runs of `tfrl train --portable` give them on other x86 processors with AVX2, too;
such a run is verified in a portable process. The status is 1 if the weights differ.

It takes as long as the run did, at most --max_hours.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from tfrl.algorithms import run_folders
from tfrl.command import parsing, program
from tfrl.experiments import verification
from tfrl.system import log


def main(words: Sequence[str]) -> None:
    """Verifies the run whose folder some words name."""
    given = parsing.new()
    text = "Import the module, and read the files, that config.json names."
    parsing.add(given, "trust", False, text)
    parsing.add(given, "max_hours", 24, "The hours after which it gives up.")

    def run(folders: Sequence[str]) -> None:
        if len(folders) != 1:
            raise ValueError(
                f"folder: got {' '.join(folders) or 'none'}, expected that of one run, "
                "such as logs/dqn_CartPole-v1_0."
            )
        folder = pathlib.Path(folders[0])
        if not given["trust"].value:
            recipe = run_folders.find_recipe(folder)
            if recipe is not None:
                run_folders.check_trusted(folder, recipe, "give --trust")
                run_folders.check_reads_nothing(folder, recipe, "give --trust")
        found = verification.verify(folder, given.max_hours)
        log.say(found.text)
        if not found.is_same:
            sys.exit(1)

    program.start(given, words, run, __doc__, takes_words=True)
