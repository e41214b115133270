"""Plots all results: a panel for each table, a bar for each contender."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks import report

_OURS, _OTHERS = "tab:orange", "tab:gray"


def draw(results: Sequence[report.Result], path: pathlib.Path) -> None:
    """Draws bars at the medians, lines from minimum to maximum, and ratios."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = [result for result in results if result.series]
    if not results:
        return
    columns = 1 if len(results) < 4 else 2
    rows = [results[i : i + columns] for i in range(0, len(results), columns)]
    heights = [max(1.6 + len(result.series) for result in row) for row in rows]
    figure, panels = pyplot.subplots(
        len(rows),
        columns,
        figsize=(8.5 * columns, 0.32 * sum(heights) + 0.9),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for panel in panels.flat[len(results) :]:
        panel.axis("off")
    for result, panel in zip(results, panels.flat, strict=False):
        _draw_panel(result, panel)
    figure.suptitle(
        "Bars: medians; lines: minimum to maximum of the rounds; "
        "orange: tfrl, gray: peers and floors"
    )
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _draw_panel(result: report.Result, panel: Any) -> None:
    ranges = [series.range() for series in result.series]
    labels = [series.label for series in result.series]
    medians = [r.median for r in ranges]
    below = [r.median - r.least for r in ranges]
    above = [r.most - r.median for r in ranges]
    colors = [_OURS if label.startswith("tfrl") else _OTHERS for label in labels]
    panel.barh(labels, medians, xerr=(below, above), color=colors, height=0.7)
    panel.invert_yaxis()
    widest = max(r.most for r in ranges)
    panel.set_xlim(0, 1.3 * widest)
    for row, (series, most) in enumerate(zip(result.series, ranges, strict=True)):
        panel.text(
            most.most + 0.01 * widest, row, _label(result, series), va="center", size=8
        )
    better = "less" if result.less_is_better else "more"
    panel.set_title(f"{result.benchmark}: {result.title}", size=10, loc="left")
    panel.set_xlabel(f"{result.unit} ({better} is better)", size=8)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _label(result: report.Result, series: report.Series) -> str:
    """Returns the median, and its ratio to the first reference's, as text."""
    median = report.number(series.range().median)
    for reference in result.references:
        ratio = result.ratio(series, reference)
        if ratio is not None:
            return f"{median}  ({ratio.median:.2f}x {reference})"
    return median
