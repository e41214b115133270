"""The rows of everything that a run has measured, in a file of JSON lines."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import numpy as np

from tfrl.system import files
from tfrl.train.runs import run_files


class History:
    """Rows by time, each a dict of the `iteration` and all numbers measured there.

    Attributes:
      rows: The rows.
    """

    def __init__(
        self,
        path: pathlib.Path | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        """Reads the rows of an earlier run.

        Args:
          path: The file, to which `add` appends in the context of `opened`; None keeps
            the rows only in memory.
          rows: Rows that a new file begins with; without a file, `add` appends to them.
        """
        self._path = path
        self._file: TextIO | None = None
        self.rows = [] if rows is None else rows
        if path is not None and path.exists():
            self.rows = run_files.read_rows(path)
        elif path is not None and rows:
            self.rows = list(rows)
            self._write()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Opens the file in this context."""
        if self._path is None:
            yield
            return
        _end_last_line(self._path)
        with files.open_to_append(self._path) as self._file:
            yield
        self._file = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a row; numbers that are not finite become text."""
        plain = _plain_row(row)
        self.rows.append(plain)
        if self._file is not None:
            self._file.write(json.dumps(plain) + "\n")
            self._file.flush()

    def forget_after(self, iteration: int) -> None:
        """Drops the rows after an iteration, which will be measured again."""
        kept = [row for row in self.rows if row["iteration"] <= iteration]
        is_shorter = len(kept) < len(self.rows)
        self.rows[:] = kept
        if is_shorter:
            self._write()

    def _write(self) -> None:
        """Writes the file again, if there is one."""
        if self._path is None:
            return
        text = "".join(json.dumps(_plain_row(row)) + "\n" for row in self.rows)
        files.write_text(self._path, text)


def _end_last_line(path: pathlib.Path) -> None:
    """Removes the part of a row that a killed run has left, or ends a whole row."""
    content = path.read_bytes() if path.exists() else b""
    size = content.rfind(b"\n") + 1
    last = content[size:]
    if last:
        is_whole = run_files.is_row(last)
        files.write_bytes(path, content + b"\n" if is_whole else content[:size])


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Returns a value for JSON, with Python numbers."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
