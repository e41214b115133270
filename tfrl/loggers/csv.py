"""Writes values as rows of a CSV file that survives interruption."""

from __future__ import annotations

import csv
import io
import os
import pathlib

from tfrl.loggers import base


class CSVLogger:
    """Appends a row to a file for each write.

    The keys of the first write become the columns, in their order. A later write leaves
    a column empty if it lacks the key, and drops keys that have no column. If the file
    exists already, rows are appended under its header. Rows are handed to the operating
    system immediately, so a killed process loses at most the row being written, whose
    remains are removed when the file is opened again.
    """

    def __init__(
        self,
        directory_or_file: str | os.PathLike[str] | None = None,
        label: str = "",
        *,
        logdir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Opens the file, making the directories above it.

        Args:
          directory_or_file: A path that ends in `.csv`, or a directory for
            `logs/<label>/logs.csv`.
          label: The name of that directory in `logs`.
          logdir: An older name of `directory_or_file`.

        Raises:
          ValueError: Unless exactly one of `directory_or_file` and `logdir` is given,
            or if the file exists and is not a CSV file of text.
        """
        if (directory_or_file is None) == (logdir is None):
            raise ValueError(
                f"directory_or_file: got {directory_or_file!r} and logdir={logdir!r}, "
                "expected exactly one of them; pass the path of the file."
            )
        path = pathlib.Path(directory_or_file or logdir or "")
        if path.suffix != ".csv":
            path = path / "logs" / label / "logs.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._fields: list[str] = []
        if path.exists():
            self._fields = next(iter(read_rows(path)), [])
            _drop_cut_line(path)
        self._file = path.open("a", encoding="utf-8", newline="")

    @property
    def file_path(self) -> str:
        """The path of the file."""
        return str(self._path)

    def write(self, values: base.Values) -> None:
        """Appends one row."""
        rows = io.StringIO()
        if not self._fields:
            self._fields = list(values)
            csv.writer(rows).writerow(self._fields)
        csv.writer(rows).writerow(
            [base.to_plain(values.get(field, "")) for field in self._fields]
        )
        # Whole lines in one write, so that only the last can be cut off.
        self._file.write(rows.getvalue())
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def drop_rows_after(path: str | os.PathLike[str], column: str, last: float) -> int:
    """Removes the rows of a CSV file whose `column` exceeds `last`.

    A resumed run calls this function with its checkpoint's step, before it opens a
    `CSVLogger`, so that no step appears twice. Rows without a number in that column are
    removed too. The file is replaced as a whole, or not at all.

    Returns:
      The number of rows removed; 0 if the file does not exist.

    Raises:
      ValueError: If the file is not a CSV file of text, or has no such column.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return 0
    header, *rows = read_rows(path) or [[]]
    if not header:
        return 0
    if column not in header:
        raise ValueError(
            f"column: got {column!r}, but {path} has {header}; pass one of these, or "
            "remove the file if it does not belong there."
        )
    index = header.index(column)
    kept = [row for row in rows if _number(row, index) <= last]
    replacement = path.with_name(path.name + ".new")
    with replacement.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *kept])
        file.flush()
        os.fsync(file.fileno())
    replacement.replace(path)
    return len(rows) - len(kept)


def read_rows(path: str | os.PathLike[str]) -> list[list[str]]:
    """Returns the rows of a CSV file with its header, without an incomplete last line.

    Raises:
      ValueError: If it is not a file of text.
    """
    try:
        content = pathlib.Path(path).read_bytes()
        text = content[: content.rfind(b"\n") + 1].decode()
        return list(csv.reader(io.StringIO(text, newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path}: cannot be read ({error}), expected a CSV file of text in UTF-8; "
            "restore it, or remove it to go on without its rows."
        ) from None


def _drop_cut_line(path: pathlib.Path) -> None:
    """Removes an incomplete last line, which an interrupted write left."""
    with path.open("rb+") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _number(row: list[str], index: int) -> float:
    try:
        return float(row[index])
    except (IndexError, ValueError):
        return float("inf")
