"""The manifest of a run: which checkpoints of its learner and servers belong together.

It is the last file that a checkpoint of the run writes. The servers write theirs while
the learner does, so a restored server may know more than the learner: it has gone on
since, or the run was killed before the manifest.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Sequence

from tfrl import train


class WriteManifest(train.Callback):
    """Writes the manifest after each checkpoint."""

    def __init__(
        self,
        path: pathlib.Path,
        iteration: Callable[[], int],
        shards: Callable[[], Sequence[str | None]],
    ) -> None:
        """Keeps the parts.

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
        temporary = self._path.with_suffix(".json.tmp")
        temporary.write_text(json.dumps(manifest, indent=2) + "\n")
        temporary.replace(self._path)


def describe(path: pathlib.Path, directories: Sequence[pathlib.Path]) -> str | None:
    """Says what a run that is resumed goes on from; None without a manifest.

    Args:
      path: The manifest.
      directories: Where each server keeps its checkpoints.
    """
    if not path.exists():
        return None
    manifest = json.loads(path.read_text())
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
