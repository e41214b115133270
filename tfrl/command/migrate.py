"""Moves programs for TF-Agents, Reverb and Acme to tfrl: prints what changes, and why.

    tfrl migrate train.py envs/          prints the changes, and what is left to decide
    tfrl migrate train.py envs/ --write  makes the changes, too
    tfrl migrate . --check               has the status 1 if something would change

It takes files of Python, notebooks, files of gin, and folders with these. It changes
those that import one of the libraries, and the modules that these import. The program
is not run. A file that git has as it is is changed in place; --write first copies any
other, and says where.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Sequence

from absl import flags

from tfrl.command import parsing, program
from tfrl.migrate import programs
from tfrl.system import log


def main(words: Sequence[str]) -> None:
    """Moves the programs at the paths in some words."""
    given = parsing.new()
    parsing.add(given, "write", False, "Change the files.")
    parsing.add(given, "check", False, "Only say whether something would change.")
    run = functools.partial(_run, given)
    program.start(given, words, run, __doc__, takes_words=True)


def _run(given: flags.FlagValues, paths: Sequence[str]) -> None:
    """Prints what becomes of the files, and writes them if this is asked for."""
    roots = [pathlib.Path(path) for path in paths]
    missing = [str(path) for path in roots if not path.exists()]
    if missing or not roots:
        raise ValueError(
            f"path: got {', '.join(missing) or 'none'}, expected files or folders of a "
            "program; give those that exist."
        )
    if given.write and given.check:
        raise ValueError("--check: got it with --write; give one of them.")
    results = programs.migrate(roots)
    changed = [each for each in results if each.is_changed]
    for each in [] if given.check else changed:
        # A patch keeps its characters, and a terminal gets no commands.
        print(log.plain(each.diff) if sys.stdout.isatty() else each.diff, end="")
    for line in programs.report(results):
        log.say(line)
    failed = programs.write(changed) if given.write else 0
    done = "changed" if given.write else "would change"
    print(f"{len(changed) - failed} of {len(results)} files {done}.")
    if changed and not (given.write or given.check):
        print("--write changes them.")
    if failed or (given.check and changed):
        sys.exit(1)
