"""The numbers that a run has measured, for rules and figures."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.train.runs import run_files


class Evidence:
    """The rows of a run and its settings.

    Attributes:
      settings: The settings of the run, by name.
      rows: The rows, each a dict of numbers measured at an `iteration`.
    """

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        """Stores the rows and the settings."""
        self.rows = rows
        self.settings = settings

    @classmethod
    def of_folder(
        cls,
        folder: str | os.PathLike,
        kinds: Mapping[str, tuple[type, ...]] | None = None,
    ) -> Evidence:
        """Reads a run's folder.

        Args:
          folder: The folder.
          kinds: The types of some settings; see `run_files.read_config`.

        Raises:
          FileNotFoundError: There is no run in the folder, or it measured nothing.
          RunDirectoryError: A file cannot be read.
        """
        path = pathlib.Path(folder)
        run_files.check_run(path)
        if not (path / "diagnostics.jsonl").exists():
            raise FileNotFoundError(
                f"folder: {str(path)!r} holds no diagnostics.jsonl; give the logdir of "
                "a run that has begun to train."
            )
        config = run_files.read_config(path / "config.json", kinds)
        return cls(run_files.read_rows(path / "diagnostics.jsonl"), config)

    def column(self, name: str, against: str = "iteration") -> np.ndarray:
        """Returns the pairs of `against` and a number, where both were measured.

        Args:
          name: The name of the number.
          against: The name of the other number.

        Returns:
          Float64 `[N, 2]`.
        """
        pairs = [
            (row[against], row[name])
            for row in self.rows
            if run_files.is_number(row.get(name))
            and run_files.is_number(row.get(against))
        ]
        return np.array(pairs, np.float64).reshape(-1, 2)

    def values(self, name: str) -> np.ndarray:
        """Returns a number in the rows that have it, float64 `[N]`."""
        return self.column(name)[:, 1]

    def late(self, name: str, least: int = 3) -> float | None:
        """Returns the median of a number over the second half of its rows.

        Args:
          name: The name of the number.
          least: The rows that are needed in this half; None is returned for fewer.
        """
        half = late_half(self.values(name))
        return float(np.median(half)) if len(half) >= least else None

    def ended_evaluations(self) -> list[Mapping[str, Any]]:
        """Returns the rows of evaluations that tell how their episodes ended."""
        return [row for row in self.rows if "evaluation_terminated" in row]

    def last(self, name: str) -> float:
        """Returns a number in the last row; 0 if it was not measured there."""
        return run_files.number(self.rows[-1], name) if self.rows else 0.0

    def done(self) -> float:
        """Returns the share of the run that is done, in [0, 1]."""
        if not self.rows:
            return 0.0
        for unit, length in (
            ("environment_steps", "num_environment_steps"),
            ("iteration", "num_iterations"),
        ):
            if self.settings.get(length):
                return float(min(self.last(unit) / self.settings[length], 1.0))
        return 1.0

    def facts(self) -> dict[str, Any]:
        """Returns what is known of the environment; see `environment_facts.find`."""
        found: dict[str, Any] = {}
        for row in self.rows:
            known = row.get("environment")
            found |= known if isinstance(known, dict) else {}
        return found

    def reward_factor(self) -> float:
        """Returns the factor of the rewards in the losses."""
        own = re.search(
            r"reward_scale_factor=(-?[\d.e+-]+)", str(self.settings.get("own_parts"))
        )
        given = own[1] if own else self.settings.get("reward_scale", 1.0)
        return float(self.settings.get("reward_scale_factor", given)) or 1.0

    def return_range(self) -> float:
        """Returns the largest mean return of an evaluation, less the smallest."""
        returns = self.values("evaluation_return")
        return float(np.ptp(returns)) if len(returns) else 0.0


def ends(evaluations: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lengths of evaluated episodes, and whether each terminated.

    Args:
      evaluations: Rows of `Evidence.ended_evaluations`.

    Returns:
      The lengths in steps, int64 `[N]`, and bool `[N]`, in the order of the rows.
    """
    lengths = [x for row in evaluations for x in row["evaluation_lengths"]]
    ended = [x for row in evaluations for x in row["evaluation_terminated"]]
    return np.array(lengths, np.int64), np.array(ended, bool)


def late_half(values: np.ndarray) -> np.ndarray:
    """Returns the second half of an array."""
    return values[len(values) // 2 :]
