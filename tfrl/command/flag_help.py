"""Writes the text of `--help`, and finds the flag that a wrong one was meant to be."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable

from absl import flags

from tfrl.algorithms import other_words

_WIDTH = 88


def text(first: str, given: flags.FlagValues, without: Iterable[str] = ()) -> str:
    """Returns the help of a command.

    Args:
      first: The text before the flags.
      given: The flags.
      without: The names of flags that are left out.
    """
    hidden = {*without}
    names = [name for name in given if name not in {*hidden, "traceback"}]
    rows = [
        (_shown(given[name]), re.sub(r"^<[^>]*>: ", "", given[name].help))
        for name in [*names, "traceback"]  # In the order of their definitions.
    ]
    return f"{first.strip()}\n\nFlags:\n{table(rows)}"


def nearest(name: str, given: flags.FlagValues) -> str | None:
    """Returns the flag whose name is nearest to `name`; None if none is near.

    For a flag of another library, it is the flag that does the same.

    Args:
      name: The name, without its dashes.
      given: The flags.
    """
    known = set(given)
    wanted = name.removeprefix("config.").replace("-", "_")
    if wanted in known:
        return wanted
    if same := other_words.same(wanted, known):
        return same
    # The environment has a flag with a shorter name.
    meant = {each: each for each in known} | {"environment": "env"}
    near = difflib.get_close_matches(wanted, meant, n=1)
    return meant[near[0]] if near and meant[near[0]] in known else None


def _shown(flag: flags.Flag) -> str:
    """Returns a flag as the user writes it, with its default if it has one."""
    if flag.boolean or flag.default is None:
        return f"--{flag.name}"
    return f"--{flag.name}={str(flag.default_as_str)[1:-1]}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Returns lines of two columns, the second one wrapped at the page's width."""
    rows = list(rows)
    width = max(len(left) for left, _ in rows)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(_WIDTH - width - 4, 24)) or [""]
        for first, line in zip([left, *[""] * len(wrapped)], wrapped, strict=False):
            lines.append(f"  {first:{width}}  {line}".rstrip())
    return "\n".join(lines)
