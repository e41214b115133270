"""Writes the columns of a run's log into callbacks.md, from `columns.csv`.

    python docs/log_columns.py

A test compares the page with them.
"""

from __future__ import annotations

import pathlib

from tfrl.train.runs import columns

PAGE = pathlib.Path(__file__).with_name("callbacks.md")
_START, _END = "<!-- columns -->\n", "<!-- end of columns -->\n"
_HEAD = "| number | what it is | unit | measured by | tag |\n|---|---|---|---|---|\n"


def page() -> str:
    """Returns the page with the columns as they are."""
    before, _, rest = PAGE.read_text().partition(_START)
    after = rest.partition(_END)[2]
    lines = map(_line, columns.COLUMNS)
    return "".join([before, _START, "\n", _HEAD, *lines, "\n", _END, after])


def _line(column: columns.Column) -> str:
    name = f"`{column.name}`{' *' * column.in_table}"
    if column.has_parts:
        name += f", `<part>_{column.name}`"
    tag = f"`{column.tag}`" if column.tag else ""
    cells = name, column.text, column.unit, column.writer, tag
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
