"""What was measured: medians, ranges and ratios, as tables and as CSV."""

from __future__ import annotations

import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Range(NamedTuple):
    """A median, and the least and the most."""

    median: float
    least: float
    most: float


@dataclasses.dataclass(frozen=True)
class Series:
    """A contender's values, one a round; fewer if it failed on the way."""

    label: str
    values: Sequence[float]

    def range(self) -> Range:
        """Its median, least and most."""
        return _range(self.values)


@dataclasses.dataclass(frozen=True)
class Result:
    """A table.

    Attributes:
      benchmark: the benchmark's name.
      title: what was measured.
      unit: of the values, such as "iterations/s".
      series: the contenders that were measured.
      references: labels of the contenders that all are compared with.
      notes: what else there is to say, such as who failed.
      less_is_better: as of seconds.
    """

    benchmark: str
    title: str
    unit: str
    series: Sequence[Series]
    references: Sequence[str] = ()
    notes: Sequence[str] = ()
    less_is_better: bool = False

    def ratio(self, series: Series, reference: str) -> Range | None:
        """How many times the reference's values a contender's are.

        Each is compared with the reference's value of the same round, between which the
        machine drifted least. None if there is no such reference.
        """
        for other in self.series:
            if other.label == reference:
                pairs = zip(series.values, other.values, strict=False)
                return _range([value / base for value, base in pairs])
        return None


def table(result: Result) -> str:
    """A result as text."""
    present = {series.label for series in result.series}
    references = [label for label in result.references if label in present]
    width = max([len(series.label) for series in result.series], default=0)
    header = f"{'':{width}}  {'median':>12}  {'least .. most':>21}"
    columns = [f"x {label}" for label in references]
    header += "".join(f"  {column:>14}" for column in columns)
    lines = [f"{result.benchmark}: {result.title}; {result.unit}", header]
    for series in result.series:
        median, least, most = series.range()
        line = f"{series.label:{width}}  {number(median):>12}"
        line += f"  {f'{number(least)} .. {number(most)}':>21}"
        for label, column in zip(references, columns, strict=True):
            ratio = result.ratio(series, label)
            shown = "" if ratio is None else f"{ratio.median:.2f}"
            line += f"  {shown:>{max(14, len(column))}}"
        lines.append(line)
    return "\n".join([*lines, *(f"  {note}" for note in result.notes), ""])


def write_csv(results: Iterable[Result], folder: pathlib.Path) -> None:
    """Writes measurements.csv, a row a value, and summary.csv, a row a ratio."""
    results = list(results)
    _write(
        folder / "measurements.csv",
        ("benchmark", "title", "contender", "unit", "round", "value"),
        [
            (r.benchmark, r.title, s.label, r.unit, i, value)
            for r in results
            for s in r.series
            for i, value in enumerate(s.values)
        ],
    )
    _write(
        folder / "summary.csv",
        (
            *("benchmark", "title", "contender", "unit", "median", "least", "most"),
            *("reference", "ratio", "ratio_least", "ratio_most"),
        ),
        [
            (r.benchmark, r.title, s.label, r.unit, *s.range(), reference, *ratio)
            for r in results
            for s in r.series
            for reference in (r.references or ("",))
            for ratio in [r.ratio(s, reference) or ("", "", "")]
        ],
    )


def _write(
    path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _range(values: Sequence[float]) -> Range:
    return Range(statistics.median(values), min(values), max(values))


def number(value: float) -> str:
    """A value in three or more digits, with thousands set apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
