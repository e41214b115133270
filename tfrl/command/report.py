"""Writes the report of one or more runs: one HTML file that needs nothing else.

tfrl report logs/ppo_CartPole-v1_0            writes report.html in that folder
tfrl report logs/sac_* --output=seeds.html    several runs in one report

A training run writes its own report when it ends, unless --noreport is given.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from tfrl.algorithms import registry, run_folders
from tfrl.command import parsing, program
from tfrl.reports import evidence, report
from tfrl.system import files, log


def main(words: Sequence[str]) -> None:
    """Writes the report of the folders in some words, and prints its findings."""
    given = parsing.new(
        output="The file to write, by default report.html in the folder of a run."
    )
    parsing.add(given, "overwrite", False, "Replace an older report at --output.")
    program.start(
        given, words, lambda folders: _run(given, folders), __doc__, takes_words=True
    )


def _run(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Writes the report, and prints its findings.

    Raises:
      ValueError: No folder is given, or there is no file for several ones.
    """
    if not folders:
        raise ValueError(
            "folders: got none, expected some of runs: tfrl report "
            "logs/ppo_CartPole-v1_0, say."
        )
    if len(folders) > 1 and given.output is None:
        raise ValueError(
            "--output: got none for several runs, expected a file's name; write "
            "--output=report.html."
        )
    path = pathlib.Path(given.output or f"{folders[0]}/report.html")
    if given.output:
        is_own = files.bears(path, report.MARK.encode())
        files.check_replaceable(
            "--output", path, is_own=is_own, overwrite=given.overwrite
        )
    kinds = run_folders.kinds()
    runs = [evidence.Evidence.of_folder(folder, kinds) for folder in folders]
    for each in report.write(folders, path, _defaults(runs[0]), runs):
        log.say(each)
    log.say(f"The report is {path}.")


def _defaults(run: evidence.Evidence) -> dict[str, object]:
    """Returns the defaults of the settings of a run's algorithm."""
    name = registry.name_of(run.settings)
    if name not in registry.CLASSES:
        return {}
    defaults: dict[str, object] = registry.find(name).defaults()
    return defaults
