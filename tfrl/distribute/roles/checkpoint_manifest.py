"""The manifest of a run: the checkpoints of learner and servers that belong together.

It is the last file that a checkpoint of the run writes. The servers write their
checkpoints while the learner writes its own, so a restored server may be ahead of the
learner: the server has saved again since, or the run was killed before it wrote the
manifest.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from tfrl import train
from tfrl.system import files
from tfrl.train.runs import run_files


class WriteManifest(train.Callback):
    """Writes the manifest after each checkpoint."""

    def __init__(
        self,
        path: pathlib.Path,
        iteration: Callable[[], int],
        shards: Callable[[], Sequence[str | None]],
    ) -> None:
        """Stores the arguments.

        Args:
          path: The file.
          iteration: Returns the iterations done so far.
          shards: Returns the newest checkpoint of each server; None without one.
        """
        self._path = path
        self._iteration = iteration
        self._shards = shards

    def on_checkpoint(self, path: str) -> None:
        """Writes the file whole or not at all."""
        manifest = {
            "iteration": self._iteration(),
            "learner": path,
            "shards": list(self._shards()),
        }
        with files.replacing(self._path) as new, new.open("w") as file:
            file.write(json.dumps(manifest, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())


def describe(path: pathlib.Path, directories: Sequence[pathlib.Path]) -> str | None:
    """Describes the checkpoints from which a run resumes; None without a manifest.

    A run resumes without a manifest, too, so a damaged one is not an error.

    Args:
      path: The manifest.
      directories: The directory of each server's checkpoints.
    """
    if not path.exists():
        return None
    try:
        return _describe(run_files.read_json(path), directories)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return (
            f"{path}: got {error!r}, expected the manifest that a checkpoint writes; "
            "the run resumes from its newest checkpoints without it, and writes it "
            "again."
        )


def _describe(manifest: Any, directories: Sequence[pathlib.Path]) -> str:
    """Returns the text of `describe`; a damaged manifest raises various errors."""
    saved = [*manifest["shards"], *[None] * len(directories)]
    parts = [f"Resuming from iteration {manifest['iteration']:,}"]
    for number, directory in enumerate(directories):
        # The names of checkpoints are their times.
        newest = max(
            (done.parent.name for done in directory.glob("*/DONE")), default=""
        )
        expected = pathlib.Path(saved[number] or "").name
        if not newest:
            what = f"empty, for want of a checkpoint in {directory}"
        elif newest > expected:
            what = f"from {newest}, newer than the learner's checkpoint"
        else:
            what = f"from {newest}"
        parts.append(f"replay server {number} {what}")
    return "; ".join(parts) + "."
