"""Shows the cache of compiled programs, limits it and empties it.

tfrl cache               where it is, how many programs it has, and their size
tfrl cache --limit=200   keeps at most 200 MB, the programs that were used last
tfrl cache --empty       deletes all programs

TFRL_CACHE_DIR=FOLDER puts the cache into a folder, and TFRL_CACHE_DIR=off turns it off.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import flags

from tfrl.command import parsing, program
from tfrl.compilation import program_cache, program_store


def main(words: Sequence[str]) -> None:
    """Shows and changes the cache."""
    given = parsing.new()
    parsing.add(given, "empty", False, "Delete all programs.")
    flags.DEFINE_integer(
        "limit",
        None,
        "The most that programs may take, in MB, from now on.",
        lower_bound=1,
        flag_values=given,
    )
    program.start(given, words, lambda: _run(given), __doc__)


def _run(given: flags.FlagValues) -> None:
    try:
        root = program_cache.find_root(os.environ)
    except program_store.NoPlaceError as reason:
        print(f"Compiled programs are not kept: {reason}.")
        return
    if given.limit is not None:
        program_store.set_limit(root, given.limit)
    if given.empty:
        program_store.empty(root)
    number, size = program_store.usage(root)
    limit = program_store.limit(root)
    print(
        f"Compiled programs: {number}, {_megabytes(size)} of at most "
        f"{_megabytes(limit)}, in {root}"
    )


def _megabytes(size: int) -> str:
    return f"{size / program_store.MEGABYTE:,.0f} MB"
