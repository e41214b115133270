"""Medians, ranges and ratios of the measurements, as tables and as CSV."""

from __future__ import annotations

import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Range(NamedTuple):
    """The median, the minimum and the maximum of some values."""

    median: float
    least: float
    most: float


@dataclasses.dataclass(frozen=True)
class Series:
    """A contender's values, one per round; fewer if it failed before the last round."""

    label: str
    values: Sequence[float]

    def range(self) -> Range:
        """Returns the median, minimum and maximum of the values."""
        return _range(self.values)


@dataclasses.dataclass(frozen=True)
class Result:
    """A table of results.

    Attributes:
      benchmark: The benchmark's name.
      title: The name of the measured quantity.
      unit: The unit of the values, such as "iterations/s".
      series: The values of each contender.
      references: Labels of the contenders that all are compared with.
      notes: Remarks, such as which contenders failed.
      less_is_better: Whether smaller values are better, as for seconds.
    """

    benchmark: str
    title: str
    unit: str
    series: Sequence[Series]
    references: Sequence[str] = ()
    notes: Sequence[str] = ()
    less_is_better: bool = False

    def ratio(self, series: Series, reference: str) -> Range | None:
        """Returns the ratios of a contender's values to the reference's.

        Each value is divided by the reference's value of the same round, because the
        machine's speed changes least within a round. None if the reference was not
        measured.
        """
        for other in self.series:
            if other.label == reference:
                pairs = zip(series.values, other.values, strict=False)
                return _range([value / base for value, base in pairs])
        return None


def table(result: Result) -> str:
    """Formats a result as text."""
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
    """Writes measurements.csv, a row per value, and summary.csv, a row per ratio."""
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
    """Formats a value with three or more digits, and commas between thousands."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
