"""Writes values as rows of a CSV file that survives interruption."""

from __future__ import annotations

import csv
import io
import math
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from tfrl.loggers import base
from tfrl.system import files, paths, throttle


class CSVLogger:
    """Appends a row to a file for each write.

    The keys of the first write become the columns, sorted. A later write leaves a
    column empty if it lacks the key. For further keys, columns are added at the right,
    empty in the earlier rows; this rewrites the file. If the file exists already, rows
    are appended under its header. Rows are passed to the operating system immediately,
    so a killed process loses at most the row being written. The remains of such a row
    are removed when the file is opened again.
    """

    def __init__(
        self,
        directory_or_file: str | os.PathLike[str] | TextIO | None = None,
        label: str = "",
        time_delta: float = 0.0,
        add_uid: bool = True,
        flush_every: int = 1,
        *,
        logdir: str | os.PathLike[str] | None = None,
        sort_columns: bool = True,
    ) -> None:
        """Opens the file, making the directories above it.

        Args:
          directory_or_file: A path that ends in `.csv`; or a directory for
            `<unique_id>/logs/<label>/logs.csv`; or a text file open for appending,
            which `close` leaves open, and whose further keys are dropped with a
            warning. None stands for the directory `~/tfrl`.
          label: The name of that directory in `logs`.
          time_delta: The least number of seconds between two rows; writes in between
            are dropped.
          add_uid: Whether a directory's file is below `system.paths.unique_id()`, so
            that each run has its own file.
          flush_every: The number of rows after which rows are passed to the operating
            system.
          logdir: An older name of `directory_or_file`.
          sort_columns: Whether columns are sorted; if not, they keep the order of the
            first write.

        Raises:
          ValueError: If both `directory_or_file` and `logdir` are given, a number is
            out of range, an open file is not open for appending, or the file exists
            and is not a CSV file of text.
        """
        if directory_or_file is not None and logdir is not None:
            raise ValueError(
                f"directory_or_file: got {directory_or_file!r} and logdir={logdir!r}, "
                "expected at most one of them; pass the path of the file."
            )
        if flush_every < 1:
            raise ValueError(
                f"flush_every: got {flush_every}, expected a number of rows of 1 or "
                "more; pass 1 to lose no row if the process is killed."
            )
        self._throttle = throttle.Throttle(time_delta)
        self._flush_every = flush_every
        self._num_rows = 0
        self._arrange = sorted if sort_columns else list
        self._fields: list[str] = []
        self._path: pathlib.Path | None = None
        place = directory_or_file or logdir or paths.DEFAULT_DIRECTORY
        if isinstance(place, str | os.PathLike):
            self._path = _file_path(place, label, add_uid)
            self._file = self._open(self._path)
        else:
            self._file = _for_appending(place)

    @property
    def file_path(self) -> str:
        """The path of the file; the name of the file if it was given open."""
        if self._path is None:
            return str(getattr(self._file, "name", ""))
        return str(self._path)

    def write(self, values: base.Values) -> None:
        """Appends one row, if `time_delta` seconds have passed since the last."""
        if not self._throttle.is_due():
            return
        self._throttle.restart()
        rows = io.StringIO()
        if not self._fields:
            self._fields = self._arrange(values)
            if self._path is not None or not self._file.tell():
                csv.writer(rows).writerow(self._fields)
        elif not values.keys() <= set(self._fields):
            self._add_columns(self._arrange(values.keys() - set(self._fields)))
        csv.writer(rows).writerow(
            [base.to_plain(values.get(field, "")) for field in self._fields]
        )
        # Whole lines are written at once, so that only the last line can be cut off.
        self._file.write(rows.getvalue())
        self._num_rows += 1
        if self._num_rows % self._flush_every == 0:
            self.flush()

    def flush(self) -> None:
        """Passes the written rows to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file, unless it was given open."""
        self.flush()
        if self._path is not None:
            self._file.close()

    def _open(self, path: pathlib.Path) -> TextIO:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            rows, size = _read_whole_rows(path)
            self._fields = next(iter(rows), [])
            if size < path.stat().st_size:
                files.write_bytes(path, path.read_bytes()[:size])
        file: TextIO = files.open_to_append(path, encoding="utf-8", newline="")
        return file

    def _add_columns(self, new: list[str]) -> None:
        """Adds columns at the right, in the file as well."""
        if self._path is None:
            _warn_of_dropped(new)
            return
        self._file.close()
        header, *rows = read_rows(self._path)
        _replace_rows(
            self._path, [header + new, *(row + [""] * len(new) for row in rows)]
        )
        self._file = self._open(self._path)


def drop_rows_after(path: str | os.PathLike[str], column: str, last: float) -> int:
    """Removes the rows of a CSV file whose `column` exceeds `last`.

    A resumed run calls this function with its checkpoint's step, before it opens a
    `CSVLogger`, so that no step appears twice. Rows without a number in that column are
    removed too, with a warning. The file is replaced as a whole, or not at all.

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
    lost = [row for row in rows if row and math.isnan(_number(row, index))]
    if lost:
        warnings.warn(
            f"CSV FILE DAMAGED: {path} has {len(lost)} rows without a number in its "
            f"column {column!r}, such as {lost[0]}, which are removed. Restore it from "
            "a copy if you have one.",
            RuntimeWarning,
            stacklevel=3,
        )
    kept = [row for row in rows if _number(row, index) <= last]
    _replace_rows(path, [header, *kept])
    return len(rows) - len(kept)


def read_rows(path: str | os.PathLike[str]) -> list[list[str]]:
    """Returns a CSV file's rows, including its header, without an incomplete last row.

    Warns if more than one line is left out because a quoted field does not end.

    Raises:
      ValueError: If the file is not a text file.
    """
    return _read_whole_rows(path)[0]


def _read_whole_rows(path: str | os.PathLike[str]) -> tuple[list[list[str]], int]:
    """Returns the rows that were written completely, and their bytes."""
    try:
        files.check_plain(path)
        content = pathlib.Path(path).read_bytes()
        text = content[: content.rfind(b"\n") + 1].decode()
        rows, end = _split_rows(text)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path}: cannot be read ({error}), expected a CSV file of text in UTF-8; "
            "restore it, or remove it to continue without its rows."
        ) from None
    rest = text[end:]
    if rest:
        warnings.warn(
            f"CSV FILE CUT: {path} ends within a quoted field of row {len(rows) + 1}; "
            f"the last {len(rest.splitlines()):,} lines, from {rest[:40]!r} on, are "
            "left out. If they were whole rows, restore the file from a copy.",
            RuntimeWarning,
            stacklevel=4,
        )
    return rows, len(text[:end].encode())


def _split_rows(text: str) -> tuple[list[list[str]], int]:
    """Returns the rows of whole lines, and the position after the last whole row."""
    lines = io.StringIO(text, newline="")
    rows: list[list[str]] = []
    end, has_ended = 0, False

    def read() -> Iterator[str]:
        nonlocal has_ended
        yield from lines
        has_ended = True

    for row in csv.reader(read()):
        if has_ended:  # The reader needs more lines to end a quoted field.
            break
        rows.append(row)
        end = lines.tell()
    return rows, end


def _file_path(
    place: str | os.PathLike[str], label: str, add_uid: bool
) -> pathlib.Path:
    path = pathlib.Path(place)
    if path.suffix == ".csv":
        return path.expanduser()
    directory = paths.process_path(path, "logs", label, add_uid=add_uid)
    return pathlib.Path(directory, "logs.csv")


def _for_appending(file: TextIO) -> TextIO:
    """Returns an open file, if it is open for appending."""
    mode = getattr(file, "mode", "a")
    if not mode.startswith("a"):
        raise ValueError(
            f"directory_or_file: got a file that is open with mode {mode!r}, expected "
            "one that is open for appending; open it with mode 'a', or pass its path."
        )
    return file


def _warn_of_dropped(keys: Iterable[Any]) -> None:
    warnings.warn(
        f"values: got the further keys {list(keys)}, which are dropped, because the "
        "first write determines the columns of an open file; give the CSVLogger the "
        "path of the file.",
        RuntimeWarning,
        stacklevel=4,
    )


def _replace_rows(path: pathlib.Path, rows: Iterable[Iterable[Any]]) -> None:
    """Replaces a file as a whole by a file with these rows."""
    with (
        files.replacing(path) as new,
        new.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerows(rows)
        file.flush()
        os.fsync(file.fileno())


def _number(row: list[str], index: int) -> float:
    try:
        return float(row[index])
    except (IndexError, ValueError):
        return float("nan")
