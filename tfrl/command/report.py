"""Writes the report of one or more runs: one HTML file that needs nothing else.

tfrl report logs/ppo_CartPole-v1_0            writes report.html in that folder
tfrl report logs/sac_* --output=seeds.html    several runs in one report

A training run writes its own report when it ends, unless --noreport is given.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Sequence

from absl import flags

from tfrl.algorithms import comparing, registry, run_folders
from tfrl.command import parsing, program
from tfrl.reports import evidence, report
from tfrl.system import files, log


def main(words: Sequence[str]) -> None:
    """Writes the report of the folders in some words, and prints its findings."""
    given = parsing.new(
        output="The file to write, by default report.html in the folder of a run."
    )
    parsing.add(given, "overwrite", False, "Replace an older report at --output.")
    run = functools.partial(_run, given)
    program.start(given, words, run, __doc__, takes_words=True)


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


def compare(words: Sequence[str]) -> None:
    """Compares runs, grouped by the settings that differ: in a table and a sentence.

        tfrl compare 'logs/ppo_CartPole-v1_*' logs/dqn_CartPole-v1_0
        tfrl compare logs/sweep_ppo_CartPole-v1 --out=logs/compared
        tfrl compare 'logs/ppo_*' 'logs/sac_*' --normalize=Pendulum-v1:-1200:-150,...

    Each word is the folder of a run or of a sweep, or a pattern. With --out it also
    writes compare.md, compare.csv and the figure compare.png.
    """
    given = parsing.new(out="Folder of compare.md, compare.csv, compare.png.")
    text = "Column of metrics.csv; the higher the better."
    parsing.add(given, "metric", "evaluation_return", text)
    parsing.add(given, "overwrite", False, "Replace an older comparison in --out.")
    flags.DEFINE_list(
        "normalize",
        None,
        "ENVIRONMENT:LOW:HIGH of each environment, the scores that become 0 and 1.",
        flag_values=given,
    )
    run = functools.partial(_compare, given)
    program.start(given, words, run, compare.__doc__, takes_words=True)


def _compare(given: flags.FlagValues, folders: Sequence[str]) -> None:
    """Prints the comparison, and writes it with `--out`."""
    if not folders:
        raise ValueError(
            "folders: got none, expected some of runs: tfrl compare 'logs/ppo_*', say."
        )
    compared = comparing.compare(
        *folders, metric=given.metric, normalize=_ranges(given.normalize)
    )
    log.say(compared)
    if given.out is not None:
        compared.write(given.out, overwrite=given.overwrite)
        print(f"Outputs: {given.out}")


def _ranges(words: Sequence[str] | None) -> dict[str, tuple[float, float]] | None:
    """Returns the scores that become 0 and 1, by the environment.

    Raises:
      ValueError: A word has another form.
    """
    if words is None:
        return None
    try:
        split = [word.rsplit(":", 2) for word in words]
        return {name: (float(low), float(high)) for name, low, high in split}
    except ValueError:
        raise ValueError(
            f"normalize: got {','.join(words)!r}, expected ENVIRONMENT:LOW:HIGH with "
            "commas; write --normalize=CartPole-v1:20:500, say."
        ) from None
