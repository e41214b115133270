"""Says which code was measured."""

from __future__ import annotations

import subprocess

from benchmarks.score_entries import ROOT


def current_commit() -> str:
    """Returns the commit of the code, with `+` if the trained code differs from it.

    Raises:
      RuntimeError: The folder is no git repository.
    """
    commit = _git("rev-parse", "--short=7", "HEAD")
    if commit.returncode != 0:
        raise RuntimeError(
            f"{ROOT} is no git repository, and a row names its commit: clone it to "
            f"make the table. git said: {commit.stderr.strip()}"
        )
    changes = _git("diff", "--quiet", "HEAD", "--", "tfrl")
    return commit.stdout.strip() + "+" * changes.returncode


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
