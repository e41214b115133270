"""The checkpoint of a sweep: the variables of all runs, and the results so far."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.savers import whole_checkpoints
from tfrl.system import files
from tfrl.train.runs import full_disk


@dataclasses.dataclass
class SweepMeasurements:
    """The measurements of a sweep of `N` runs so far.

    Attributes:
      iterations: The number of iterations before each evaluation.
      rows: The losses, environment steps and returns of each evaluation, each `[N]`.
      seconds: The time until each evaluation since the one before.
    """

    iterations: list[int] = dataclasses.field(default_factory=list)
    rows: list[list[np.ndarray]] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)

    @property
    def done(self) -> int:
        """The number of iterations so far."""
        return self.iterations[-1] if self.iterations else 0

    def columns(self) -> list[np.ndarray]:
        """Returns the losses, environment steps and returns, each `[N, E]`."""
        return [np.stack(column, axis=1) for column in zip(*self.rows, strict=True)]


class SweepCheckpoint:
    """A file that holds the last state of a sweep; each save replaces it whole.

    It is an npz file that ends with the checksum of all bytes before.
    """

    def __init__(
        self, directory: str | os.PathLike, settings: Mapping[str, Any]
    ) -> None:
        """Creates the directory.

        Args:
          directory: The directory of the file.
          settings: The settings that must be the same when the sweep is resumed, as
            values of JSON, by the names of arguments.
        """
        self._path = pathlib.Path(directory) / "sweep.npz"
        self._settings = json.loads(json.dumps(settings))
        with full_disk.explaining():
            self._path.parent.mkdir(parents=True, exist_ok=True)

    def save(self, progress: SweepMeasurements, arrays: Sequence[np.ndarray]) -> None:
        """Replaces the file.

        Args:
          progress: The results so far.
          arrays: The state of all runs.
        """
        named = {
            "settings": np.array(json.dumps(self._settings)),
            "iterations": np.array(progress.iterations, np.int64),
            "seconds": np.array(progress.seconds, np.float64),
            **{f"array_{i}": array for i, array in enumerate(arrays)},
        }
        for name, column in zip(_COLUMNS, progress.columns(), strict=True):
            named[name] = column
        with (
            full_disk.explaining(),
            files.replacing(self._path) as new,
            open(new, "w+b") as file,
        ):
            np.savez(file, allow_pickle=False, **named)
            file.seek(0)
            file.write(_trailer(files.crc32(file)))
            file.flush()
            os.fsync(file.fileno())

    def restore(self) -> tuple[SweepMeasurements, list[np.ndarray]] | None:
        """Returns the arguments of the last `save`, or None if there is none.

        Raises:
          CheckpointError: The file is damaged.
          ValueError: The file belongs to a sweep with other settings.
        """
        if not self._path.exists():
            return None
        with self._explained():
            _check_whole(self._path)
            with np.load(self._path, allow_pickle=False) as file:
                settings = json.loads(str(file["settings"]))
                columns = [file[name] for name in _COLUMNS]
                iterations = file["iterations"].tolist()
                seconds = file["seconds"].tolist()
                count = sum(name.startswith("array_") for name in file.files)
                arrays = [file[f"array_{i}"] for i in range(count)]
        for name, now in self._settings.items():
            if settings.get(name) != now:
                raise ValueError(
                    f"{name}: got {now}, but {self._path} belongs to a sweep with "
                    f"{settings.get(name)}; give this value to continue the sweep, or "
                    "choose another directory."
                )
        rows = [[c[:, i] for c in columns] for i in range(len(iterations))]
        return SweepMeasurements(iterations, rows, seconds), arrays

    @contextlib.contextmanager
    def _explained(self) -> Any:
        try:
            yield
        except Exception as error:  # The zip module raises errors of many kinds.
            raise whole_checkpoints.CheckpointError(
                f"{self._path}: cannot be read ({error}); restore it from a copy, or "
                "remove it to start the sweep from the beginning."
            ) from error


_COLUMNS = ("losses", "environment_steps", "returns")
_LABEL = b"crc32"


def _trailer(value: int) -> bytes:
    return _LABEL + value.to_bytes(4, "big")


def _check_whole(path: pathlib.Path) -> None:
    """Raises a ValueError if the file has changed since it was written."""
    files.check_plain(path)
    size = path.stat().st_size - len(_trailer(0))
    with path.open("rb") as file:
        found = _trailer(files.crc32(file, max(0, size)))
        file.seek(max(0, size))
        if file.read() != found:
            raise ValueError("its checksum is wrong")
