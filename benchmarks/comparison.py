"""Compares two checkouts: ratios, their intervals, and which checkout is faster.

The other checkout's contender has this checkout's label, prefixed by "other: ". Each
round gives one ratio: this checkout's value divided by the other's. The interval is a
distribution-free 95 % confidence interval of the ratios' median: its ends are order
statistics of the ratios, chosen by the binomial distribution. It needs six rounds or
more.
"""

from __future__ import annotations

import csv
import math
import pathlib
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import report

SLOWER, FASTER = 0.97, 1.03
_OTHER = "other: "
_CONFIDENCE = 0.95


class Comparison(NamedTuple):
    """A contender of this checkout, compared with the same one of the other.

    Attributes:
      this: The values of this checkout's contender, one per round.
      other: The values of the other checkout's contender.
      ratio: The median of the rounds' ratios.
      interval: The ends of that median's interval; None if there are too few rounds.
      verdict: "slower" or "faster" if the whole interval is; empty otherwise.
    """

    this: report.Series
    other: report.Series
    ratio: float
    interval: tuple[float, float] | None
    verdict: str


def other(label: str) -> str:
    """Returns the label of the other checkout's contender."""
    return _OTHER + label


def is_other(label: str) -> bool:
    """Returns whether a label names the other checkout's contender."""
    return label.startswith(_OTHER)


def this(label: str) -> str:
    """Returns the label of this checkout's contender."""
    return label.removeprefix(_OTHER)


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of a median, or None if there are fewer than 6 values.

    Its ends are the k-th smallest and the k-th largest value, with the largest k for
    which 2 P[Binomial(n, 1/2) < k] <= 0.05.
    """
    ordered, count = sorted(values), len(values)
    k, outside = 0, 1
    while 2 * outside <= (1 - _CONFIDENCE) * 2**count:
        k += 1
        outside += math.comb(count, k)
    return (ordered[k - 1], ordered[-k]) if k else None


def compare(
    this: report.Series, other: report.Series, less_is_better: bool = False
) -> Comparison:
    """Compares the values of the rounds that both contenders completed."""
    pairs = zip(this.values, other.values, strict=False)
    ratios = [ours / theirs for ours, theirs in pairs]
    interval = median_interval(ratios)
    verdict = _verdict(interval, less_is_better) if interval else ""
    return Comparison(this, other, statistics.median(ratios), interval, verdict)


def _verdict(interval: tuple[float, float], less_is_better: bool) -> str:
    low, high = interval
    if less_is_better:
        low, high = 1 / high, 1 / low
    if high < SLOWER:
        return "slower"
    return "faster" if low > FASTER else ""


def comparisons(result: report.Result) -> Iterator[Comparison]:
    """Yields the contenders of a result that were measured in both checkouts."""
    series = {series.label: series for series in result.series}
    for label, ours in series.items():
        if other(label) in series:
            yield compare(ours, series[other(label)], result.less_is_better)


def table(result: report.Result) -> str:
    """Formats a result: a line for each contender, with both checkouts' medians."""
    compared = {c.this.label: c for c in comparisons(result)}
    labels = dict.fromkeys(this(series.label) for series in result.series)
    width = max(map(len, labels), default=0)
    medians = {s.label: report.number(s.range().median) for s in result.series}
    lines = [
        f"{result.benchmark}: {result.title}; {result.unit}",
        f"{'':{width}}  {'this':>12}  {'other':>12}  {'this / other':>12}  "
        f"{'95 % interval':>16}",
    ]
    for label in labels:
        line = f"{label:{width}}  {medians.get(label, ''):>12}"
        line += f"  {medians.get(other(label), ''):>12}"
        if label in compared:
            line += f"  {_ratio(compared[label])}"
        lines.append(line.rstrip())
    return "\n".join([*lines, *(f"  {note}" for note in result.notes), ""])


def summary(results: Iterable[report.Result]) -> Iterator[str]:
    """Yields lines that say how many contenders became slower or faster, and which."""
    compared = [(r, c) for r in results for c in comparisons(r)]
    for verdict in ("slower", "faster"):
        found = [(r, c) for r, c in compared if c.verdict == verdict]
        yield f"{verdict} than the other checkout: {len(found)} of {len(compared)}"
        for result, one in found:
            where = f"{result.benchmark}: {result.title}; {one.this.label}"
            yield f"  {where}; {result.unit}: {_ratio(one)}"
    few = sum(one.interval is None for _, one in compared)
    if few:
        yield f"too few rounds for an interval: {few} of {len(compared)}"


def write_csv(results: Iterable[report.Result], path: pathlib.Path) -> None:
    """Writes a row for each contender that was measured in both checkouts."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            (
                *("benchmark", "title", "contender", "unit", "this", "other"),
                *("ratio", "low", "high", "rounds", "verdict"),
            )
        )
        for result in results:
            for one in comparisons(result):
                rounds = min(len(one.this.values), len(one.other.values))
                medians = one.this.range().median, one.other.range().median
                writer.writerow(
                    (
                        *(result.benchmark, result.title, one.this.label, result.unit),
                        *(*medians, one.ratio, *(one.interval or ("", ""))),
                        *(rounds, one.verdict),
                    )
                )


def _ratio(one: Comparison) -> str:
    shown = "{:.3f} .. {:.3f}".format(*one.interval) if one.interval else ""
    return f"{one.ratio:>12.3f}  {shown:>16}  {one.verdict}".rstrip()
