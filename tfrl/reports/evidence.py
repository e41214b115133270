"""The numbers that a run has measured, for rules and figures."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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
    def of_folder(cls, folder: str | os.PathLike) -> Evidence:
        """Reads a run's folder.

        Args:
          folder: The folder.

        Raises:
          FileNotFoundError: There is no run in the folder, or it measured nothing.
        """
        path = pathlib.Path(folder)
        for name in ("config.json", "diagnostics.jsonl"):
            if not (path / name).exists():
                raise FileNotFoundError(
                    f"folder: {str(path)!r} holds no {name}; give the logdir of a run "
                    "that has begun to train."
                )
        config = json.loads((path / "config.json").read_text())
        return cls(read_rows(path / "diagnostics.jsonl"), config)

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
            if _is_number(row.get(name)) and _is_number(row.get(against))
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

    def done(self) -> float:
        """Returns the share of the run that is done, in [0, 1]."""
        if not self.rows:
            return 0.0
        for unit, length in (
            ("environment_steps", "num_environment_steps"),
            ("iteration", "num_iterations"),
        ):
            if self.settings.get(length):
                done = self.rows[-1].get(unit, 0) / self.settings[length]
                return float(min(done, 1.0))
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


def late_half(values: np.ndarray) -> np.ndarray:
    """Returns the second half of an array."""
    return values[len(values) // 2 :]


def read_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows in a file of JSON lines; none if there is no file.

    A line that a killed run has left unfinished is skipped.
    """
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and isinstance(row.get("iteration"), int):
            rows.append(row)
    return rows


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and bool(np.isfinite(value))
