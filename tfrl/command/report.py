"""Writes the report of one or more runs: one HTML file that needs nothing else.

tfrl report logs/ppo_CartPole-v1_0            writes report.html in that folder
tfrl report logs/sac_* --output=seeds.html    several runs in one report

A training run writes its own report when it ends, unless --noreport is given.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

from tfrl.algorithms import registry, run_folders
from tfrl.command import errors
from tfrl.reports import evidence, report


def main() -> None:
    """Writes the report, and prints its findings."""
    parser = argparse.ArgumentParser(
        prog="tfrl report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logdir", nargs="+", help="the folder of a run")
    parser.add_argument(
        "--output", help="the file to write; report.html in the folder of a single run"
    )
    arguments = parser.parse_args()
    folders = arguments.logdir
    if len(folders) > 1 and arguments.output is None:
        parser.error("--output: got none for several runs, expected a file's name")
    path = pathlib.Path(arguments.output or f"{folders[0]}/report.html")
    warnings.showwarning = errors.show_warning
    kinds = run_folders.kinds()
    try:
        runs = [evidence.Evidence.of_folder(folder, kinds) for folder in folders]
        findings = report.write(folders, path, _defaults(runs[0]), runs)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    for each in findings:
        print(each)
    print(f"The report is {path}.")


def _defaults(run: evidence.Evidence) -> dict[str, object]:
    """Returns the defaults of the settings of a run's algorithm."""
    name = registry.name_of(run.settings)
    if name not in registry.CLASSES:
        return {}
    defaults: dict[str, object] = registry.find(name).defaults()
    return defaults
