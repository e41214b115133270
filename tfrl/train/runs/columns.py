"""The columns of a run's log: what each number is called, and what it means.

`columns.csv` is the one list of them. The log takes the tags in TensorBoard from it,
the readers of `diagnostics.jsonl` what a value may be, and the page about logs a table.

>>> from tfrl.train.runs import columns
>>> columns.find("actor_gradient_norm").text
'norm of the gradient before clipping'
"""

from __future__ import annotations

import csv
import dataclasses
import pathlib
from typing import Any, Literal

Kind = Literal["count", "seconds", "number", "episodes", "facts", "other"]


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of `metrics.csv`, of `diagnostics.jsonl`, or of both.

    Attributes:
      name: Its name.
      text: What it is, without a period.
      unit: Its unit; "" for a number without one.
      writer: Who measures it.
      tag: Its tag in TensorBoard, whose first part is its group; "" if it has none.
      kind: What a value may be. Counts and seconds are finite. `episodes` are lists of
        one length, with an entry for each episode of an evaluation, and `facts`
        dictionaries.
      in_table: Whether metrics.csv has it.
      has_parts: Whether its name may have the label of a part of the agent's update, or
        of an objective, in front, as in `actor_learning_rate`.
    """

    name: str
    text: str
    unit: str
    writer: str
    tag: str
    kind: Kind
    in_table: bool
    has_parts: bool


# The writer of columns that callbacks measure.
CALLBACK = "a callback"
_FLAGS = {"yes": True, "no": False}


def _read() -> tuple[Column, ...]:
    path = pathlib.Path(__file__).with_suffix(".csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    return tuple(
        Column(**{name: _FLAGS.get(value, value) for name, value in row.items()})
        for row in rows
    )


COLUMNS = _read()
BY_NAME = {column.name: column for column in COLUMNS}

# What metrics.csv begins with, in this order; columns of a `RunView` follow.
TABLE = tuple(column.name for column in COLUMNS if column.in_table)


def find(name: str) -> Column | None:
    """Returns the column of a number; None for one that only this run has.

    Args:
      name: The name, with the label of a part in front if there is one.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    words = name.split("_")
    ends = ("_".join(words[i:]) for i in range(1, len(words)))
    found = next((BY_NAME[end] for end in ends if end in BY_NAME), None)
    return found if found is not None and found.has_parts else None


def tag(name: str) -> str:
    """Returns the tag of a number in TensorBoard, whose first part is its group."""
    column = BY_NAME.get(name)
    return column.tag if column is not None and column.tag else f"train/{name}"


def named(kind: Kind) -> tuple[str, ...]:
    """Returns the names of the columns of a kind."""
    return tuple(column.name for column in COLUMNS if column.kind == kind)
