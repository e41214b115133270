"""Reads the files in the folder of a run, with one line a fault that names the file.

The commands, `tfrl.load` and runs that resume read these files here alone. A file that
cannot be read raises a `RunDirectoryError`. Single values and lines that cannot be read
are left out, with one warning a file: a run of millions of steps is worth more than a
line of its log.
"""

from __future__ import annotations

import difflib
import json
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.loggers import csv as csv_logger
from tfrl.system import files, log
from tfrl.train.runs import columns

# What a world model predicts of a replayed sequence.
IMAGINED = "imagined.png"
# Deeper JSON is damaged: the functions that write it as text would not end well.
_DEEPEST = 50
_LARGEST = 1e100  # A larger number has no meaning, and figures cannot show it.
_LARGEST_COUNT = 2**63
_TEXTS = ("algorithm", "env")
_LENGTHS = ("num_iterations", "num_environment_steps", "schedule_iterations")
_COUNTS = columns.named("count")
_EPISODES = columns.named("episodes")
_NOT_FINITE = ("nan", "inf", "-inf")
# The facts of `eval.environment_facts.find` that are numbers, and that are words; the
# others are true or false.
_NUMERIC_FACTS = (
    "observation_correlation",
    "own_bounds_reached",
    "reward_threshold",
    "time_limit",
)
_WORDS = ("dead_actions", "evaluation_differs")


# The folders in a run's folder, which libraries read and write, and those of its runs.
_FOLDERS = (
    *("checkpoints", "policy", "final_policy", "policy.old", "final_policy.old"),
    *("tensorboard", "export", "replay_server"),
)
_FOLDERS_OF_RUNS = ("runs", "programs")


class RunDirectoryError(ValueError):
    """The folder of a run, or a file in it, cannot be used."""

    def __init__(self, text: str) -> None:
        """Stores the text, parts of which may be from the folder; see `log.plain`."""
        super().__init__(log.plain(text))


def check_links(folder: pathlib.Path) -> None:
    """Checks that the folders in the folder of a run are no links, and hold none.

    The run may be somebody else's, and its links lead to files of the user's own. The
    folder of the run may be a link. Files in it are checked where they are read.

    Raises:
      RunDirectoryError: There is a link.
    """
    for name in (*_FOLDERS, *_FOLDERS_OF_RUNS):
        _check_no_link(folder / name)
    for name in _FOLDERS:
        check_tree(folder / name)
    for name in _FOLDERS_OF_RUNS:
        for path in (folder / name).glob("*"):
            _check_no_link(path)


def check_tree(folder: pathlib.Path) -> None:
    """Raises a RunDirectoryError for a link anywhere inside a folder."""
    for place, inner, names in os.walk(folder):
        for each in (*inner, *names):
            _check_no_link(pathlib.Path(place, each))


def _check_no_link(path: pathlib.Path) -> None:
    if path.is_symlink():
        raise RunDirectoryError(
            f"{path}: it is a link, to {os.readlink(path)!r}, expected a folder or a "
            "file of the run itself, which may be somebody else's; link the whole "
            "folder of the run instead, or copy what the link leads to, if you trust "
            "it, as `cp -rL` does."
        )


def check_run(folder: pathlib.Path) -> None:
    """Raises a FileNotFoundError unless a folder holds a run; it names one nearby."""
    lack = _why_no_run(folder)
    if not lack:
        return
    inside = sorted(
        place.parent
        for pattern in ("*/config.json", "runs/*/config.json")
        for place in folder.glob(pattern)
    )
    beside = {x.parent.name: x.parent for x in folder.parent.glob("*/config.json")}
    near = inside or [
        beside[name] for name in difflib.get_close_matches(folder.name, beside, n=1)
    ]
    raise FileNotFoundError(
        f"folder: got {str(folder)!r}, which {lack}, expected the folder of a run, to "
        "which an algorithm was trained or saved; "
        + (
            f"did you mean {str(near[0])!r}?"
            if near
            else "give what training named as its outputs."
        )
    )


def _why_no_run(folder: pathlib.Path) -> str:
    """Returns why a folder is not that of a run; empty if it is, or is damaged."""
    if not folder.is_dir():
        return "does not exist"
    config = folder / "config.json"
    if not config.exists():
        return "holds no config.json"
    try:
        found = read_json(config)
    except RunDirectoryError:
        return ""
    program = found.get("program") if isinstance(found, dict) else None
    names = {"sweep": "a sweep", "tune": "a search"}
    return f"is that of {names[program]}" if program in names else ""


def read_json(path: pathlib.Path, remedy: str = "restore it from a copy") -> Any:
    """Returns what a JSON file holds.

    Args:
      path: The file.
      remedy: What to do about a damaged file, for the error.

    Raises:
      RunDirectoryError: The file cannot be read.
    """
    try:
        return _parsed(_content(path))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); {remedy}."
        ) from None


def read_config(
    path: pathlib.Path, kinds: Mapping[str, tuple[type, ...]] | None = None
) -> dict[str, Any]:
    """Returns the configuration in config.json.

    Args:
      path: The file.
      kinds: The types that the values of some fields may have. Fields with other
        values, and the names of algorithm and environment and the lengths if they are
        no text and no integers, are left out with a warning. None keeps all fields.

    Raises:
      RunDirectoryError: The file cannot be read, or holds no configuration, or its
        folder has links; see `check_links`.
    """
    check_links(path.parent)
    remedy = (
        "restore it, choose another logdir, or start again with overwrite=True or "
        "--overwrite"
    )
    config = read_json(path, remedy)
    if not isinstance(config, dict):
        raise RunDirectoryError(
            f"{path}: got a {type(config).__name__}, expected a JSON object with the "
            f"fields of the run's configuration; {remedy}."
        )
    if kinds is None:
        return config
    expected: dict[str, tuple[type, ...]] = dict(kinds)
    expected |= {name: (str, type(None)) for name in _TEXTS}
    expected |= {name: (int, type(None)) for name in _LENGTHS}
    wrong = [
        name
        for name, types in expected.items()
        if name in config and not _is_one_of(config[name], types)
    ]
    _warn(path, [f"{name}: got {_short(config[name])}" for name in wrong])
    return {name: value for name, value in config.items() if name not in wrong}


def read_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows of diagnostics.jsonl; none if there is no such file.

    A last line that a killed run has not finished is left out without a warning.

    Raises:
      RunDirectoryError: It is no file, or may not be read.
    """
    if not path.exists():
        return []
    try:
        *lines, last = _content(path).split(b"\n")
        lines += [last] * is_row(last)
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); restore it from a copy, or remove it."
        ) from None
    rows, faults = [], []
    for i, line in enumerate(lines, start=1):
        try:
            row = _row(line)
        except ValueError as error:
            faults.append(f"line {i}: {error}")
            continue
        wrong = list(_wrong_values(row))
        faults += [f"line {i}: {name}: got {_short(row[name])}" for name in wrong]
        row = {name: x for name, x in row.items() if name not in wrong}
        if returns := row.get("evaluation_returns"):
            row["evaluation_returns"] = list(map(_as_number, returns))
        rows.append(row)
    _warn(path, faults)
    return rows


def is_row(line: bytes) -> bool:
    """Whether a line of diagnostics.jsonl is a whole row."""
    try:
        return bool(_row(line))
    except ValueError:
        return False


def number(row: Mapping[str, Any], name: str) -> float:
    """Returns a number of a row; 0 if it was not measured there, or is not finite."""
    value = row.get(name)
    return value if value is not None and is_number(value) else 0.0


def is_number(value: Any) -> bool:
    """Whether a value of a row is a finite number."""
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return is_plain and -_LARGEST < value < _LARGEST


def read_metrics(path: pathlib.Path) -> list[dict[str, str]]:
    """Returns the rows of metrics.csv, each a dict of the cells by their columns.

    Raises:
      RunDirectoryError: It is no CSV file of text.
    """
    try:
        header, *rows = csv_logger.read_rows(path) or [[]]
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); restore it from a copy."
        ) from None
    except ValueError as error:
        raise RunDirectoryError(str(error)) from None
    return [dict(zip(header, row, strict=False)) for row in rows]


def numbers(
    path: pathlib.Path,
    rows: Sequence[Mapping[str, str]],
    names: Sequence[str],
    empty: str = "",
) -> np.ndarray:
    """Returns columns of metrics.csv as float64 `[N, len(names)]`.

    Args:
      path: The file, for the error.
      rows: The rows `[N]`, as `read_metrics` returns them.
      names: The columns.
      empty: What an empty cell stands for.

    Raises:
      RunDirectoryError: A cell is no number.
    """
    try:
        found = [[float(row.get(name) or empty) for name in names] for row in rows]
    except ValueError as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}), expected the metrics of a run, with "
            f"numbers in the columns {', '.join(names)}; restore it from a copy."
        ) from None
    return np.array(found, np.float64).reshape(-1, len(names))


def read_media(path: pathlib.Path, most: int) -> bytes | None:
    """Returns a film or a picture of at most `most` bytes; None if there is none.

    A link is not followed, since a report that is sent to others would hold what it
    leads to.
    """
    if path.is_symlink() or not path.is_file() or path.stat().st_size > most:
        return None
    return path.read_bytes()


def _content(path: pathlib.Path) -> bytes:
    files.check_plain(path)
    return path.read_bytes()


def _parsed(content: bytes) -> Any:
    """Returns what JSON holds; raises a ValueError if it is damaged."""
    try:
        value = json.loads(content)
        if b"\\u" in content:
            # Half of a surrogate pair is no text that could be printed.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is too deep") from None
    level = [value]
    for _ in range(_DEEPEST):
        level = [x for each in level for x in _inner(each)]
    if level:
        raise ValueError("it is too deep")
    return value


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _row(line: bytes) -> dict[str, Any]:
    """Returns a row; raises a ValueError if the line holds none."""
    row = _parsed(line)
    if not isinstance(row, dict) or not is_count(row.get("iteration")):
        raise ValueError("it holds no row with an iteration")
    wrong = [name for name in _COUNTS if name in row and not is_count(row[name])]
    if wrong or ("train_steps" in row) != ("environment_steps" in row):
        got = (
            f"{wrong[0]}: got {_short(row[wrong[0]])}" if wrong else "it lacks a count"
        )
        raise ValueError(got)
    return row


def _wrong_values(row: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the values of a row that are not what they should be."""
    are_episodes = _are_episodes({x: row[x] for x in _EPISODES if x in row})
    for name, value in row.items():
        column = columns.find(name)
        kind = None if column is None else column.kind
        if kind == "episodes":
            is_right = are_episodes
        elif kind == "seconds":
            is_right = is_number(value)
        elif kind == "facts":
            is_right = isinstance(value, dict) and _are_facts(value)
        elif isinstance(value, str):
            is_right = value in _NOT_FINITE
        elif kind == "number":
            is_right = isinstance(value, int | float) and not isinstance(value, bool)
        else:
            is_right = value is not None
        if not is_right:
            yield name


def _are_episodes(columns: Mapping[str, Any]) -> bool:
    """Whether these are the episodes of an evaluation: lists of one length."""
    if "evaluation_terminated" in columns and "evaluation_lengths" not in columns:
        return False
    right = {
        "evaluation_returns": lambda x: is_number(x) or x in _NOT_FINITE,
        "evaluation_lengths": lambda x: is_number(x) and is_count(int(x)),
        "evaluation_terminated": lambda x: isinstance(x, bool),
    }
    return (
        all(isinstance(column, list) for column in columns.values())
        and len({len(column) for column in columns.values()}) <= 1
        and all(right[name](x) for name, column in columns.items() for x in column)
    )


def _are_facts(facts: Mapping[str, Any]) -> bool:
    """Whether the facts of an environment have their types; None is no fact."""
    known = {name: x for name, x in facts.items() if x is not None}
    numbers = [known[name] for name in _NUMERIC_FACTS if name in known]
    lists = [known[name] for name in _WORDS if name in known]
    span = known.get("reward_range", [0, 0])
    return (
        all(map(_is_real, numbers))
        and all(isinstance(x, list) for x in lists)
        and all(isinstance(word, str) for x in lists for word in x)
        and isinstance(span, list)
        and len(span) == 2
        and all(map(_is_real, span))
    )


def _is_real(value: Any) -> bool:
    return is_number(value) or isinstance(value, float)


def _as_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def is_count(value: Any) -> bool:
    """Whether a value is an integer of 0 or more."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and 0 <= value < _LARGEST_COUNT


def _is_one_of(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    if isinstance(value, int | float):
        return isinstance(value, types) and is_number(value)
    return isinstance(value, types)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else f"{text[:36]} ..."


def _warn(path: pathlib.Path, faults: Sequence[str]) -> None:
    """Says that values or lines of a file are left out, if there are any."""
    if not faults:
        return
    more = f", and {len(faults) - 1:,} more" if len(faults) > 1 else ""
    warnings.warn(
        f"{path}: {log.plain(faults[0])}, which cannot be used and is left out{more}; "
        "restore the file from a copy if you have one.",
        RuntimeWarning,
        stacklevel=2,  # Once, whoever reads the file again.
    )
