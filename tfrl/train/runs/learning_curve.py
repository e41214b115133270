"""The plot of a run: evaluated and collected returns over environment steps."""

from __future__ import annotations

import os
import pathlib

from tfrl.system import files
from tfrl.train.runs import run_files


def plot_learning_curve(
    metrics_csv: str | os.PathLike, output: str | os.PathLike, title: str = ""
) -> None:
    """Draws the learning curve in `metrics.csv`; the suffix of `output` is its format.

    The plot shows the columns `evaluation_return` (with a band of one standard
    deviation, `evaluation_return_std`) and `average_return` over `environment_steps`,
    or over `train_steps` if no environment was stepped. Rows in which these columns are
    empty are left out.

    Raises:
      ValueError: If `metrics_csv` is not a CSV file of text.
    """
    # This is imported here because matplotlib loads slowly and workers do not need it.
    from matplotlib import figure

    rows = run_files.read_metrics(pathlib.Path(metrics_csv))
    axes_figure = figure.Figure(figsize=(7, 4.2), layout="constrained")
    axes = axes_figure.add_subplot()
    collects = any(_number(row.get("environment_steps")) > 0 for row in rows)
    x = "environment_steps" if collects or not rows else "train_steps"
    if x == "environment_steps":
        steps, collected = _columns(rows, x, "average_return")
        label = "collecting, last 10 episodes"
        axes.plot(steps, collected, color="0.6", linewidth=1, label=label)
    steps, evaluated, spread = _columns(
        rows, x, "evaluation_return", "evaluation_return_std"
    )
    low = [mean - std for mean, std in zip(evaluated, spread, strict=True)]
    high = [mean + std for mean, std in zip(evaluated, spread, strict=True)]
    axes.fill_between(steps, low, high, color="tab:blue", alpha=0.15, linewidth=0)
    axes.plot(
        steps,
        evaluated,
        color="tab:blue",
        marker="o",
        markersize=3,
        label="evaluation, mean ± standard deviation",
    )
    words = title.replace("$", r"\$")  # Without it a dollar begins mathematics.
    axes.set(xlabel=x.replace("_", " "), ylabel="return", title=words)
    axes.grid(alpha=0.3)
    axes.legend(loc="best", frameon=False)
    with files.replacing(output) as new:
        axes_figure.savefig(new, dpi=150)


def _columns(rows: list[dict[str, str]], *names: str) -> list[list[float]]:
    """Returns the named columns, without rows in which a value is not a number."""
    values = [[_number(row.get(name)) for name in names] for row in rows]
    complete = [row for row in values if all(value == value for value in row)]
    return [list(column) for column in zip(*complete, strict=True)] or [
        [] for _ in names
    ]


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
