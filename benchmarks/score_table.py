"""Makes docs/scores.md and its plot from the rows of the score table."""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks import scores

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
_HEAD = """# Scores

Returns of greedy episodes of the final weights: of 1,000 episodes on the environments
that are written in TensorFlow, of 50 on the others. IQM is the interquartile mean over
the seeds, with its 95 % bootstrap interval (Agarwal et al., "Deep reinforcement
learning at the edge of the statistical precipice", 2021); the settings were chosen on
other seeds. A reference is a published return, most of them of a single run. Seconds
are those of one run's iterations, with one thread.

"""
_COLUMNS = (
    "agent",
    "environment",
    "steps",
    "seeds",
    "IQM (95 % interval)",
    "worst",
    "reference",
    "seconds",
)
_TAIL = """
The runs, one row each, are in `benchmarks/scores.csv`. This command trains what is
missing there and makes this page:

```
python -m benchmarks.scores
```

The same statistics of runs of your own:

```python
from tfrl.eval import statistics

summary = statistics.summarize([-150.3, -148.2, -152.9, -147.7, -149.1])
summary.interquartile_mean, summary.interquartile_mean_interval
```

One run is its example with the same configuration:
"""


def write(
    entries: Sequence[scores.Entry],
    rows: Sequence[Mapping[str, str]],
    logs: pathlib.Path,
    docs: pathlib.Path = DOCS,
) -> None:
    """Writes the page, and its plot if all of the runs' folders are in `logs`."""
    lines, commands, found = [], [], []
    for entry in entries:
        own = [
            row
            for row in rows
            if (row["agent"], row["config"]) == (entry.agent, entry.config)
        ]
        if own:
            lines.append(line(entry, own))
            words = (
                f"python -m examples.{entry.example}",
                f"--config={entry.config}",
                *entry.flags,
            )
            commands.append(
                f"- {entry.agent} on {own[0]['environment']}: `{' '.join(words)}`"
            )
            folders = [entry.folder(int(row["seed"]), logs) for row in own]
            found.append((f"{entry.agent}, {own[0]['environment']}", folders))
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    text = "\n".join([_HEAD.rstrip("\n"), "", *head, *lines, _TAIL, *commands, ""])
    # The folders of the runs are not in the repository, but their plot is.
    if all((f / "metrics.csv").exists() for _, folders in found for f in folders):
        plot(found, docs / "scores.png")
    if (docs / "scores.png").exists():
        text += "\n![Learning curves](scores.png)\n"
    (docs / "scores.md").write_text(text, encoding="utf-8")


def line(entry: scores.Entry, rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the line of an entry's runs in the table."""
    from tfrl.eval import statistics

    returns = [float(row["return"]) for row in rows]
    summary = statistics.summarize(returns)
    low, high = summary.interquartile_mean_interval
    reference = (
        "" if entry.reference is None else f"{entry.reference:g} ({entry.source})"
    )
    seconds = np.median([float(row["seconds"]) for row in rows])
    return (
        f"| {entry.agent} | {rows[0]['environment']} | {int(rows[0]['steps']):,} "
        f"| {len(rows)} | {summary.interquartile_mean:.1f} ({low:.1f}, {high:.1f}) "
        f"| {min(returns):.1f} | {reference} | {seconds:.0f} |"
    )


def plot(
    curves: Sequence[tuple[str, Sequence[pathlib.Path]]], path: pathlib.Path
) -> None:
    """Plots the evaluations during training: each run's, and their interquartile mean.

    Args:
      curves: The title of a panel, and the folders of its runs.
      path: Where to save the picture.
    """
    from matplotlib import figure

    from tfrl.eval import statistics

    columns = min(3, len(curves))
    height = -(-len(curves) // columns)
    picture = figure.Figure(figsize=(4.5 * columns, 3.2 * height), layout="constrained")
    panels = picture.subplots(height, columns, squeeze=False).ravel()
    for panel, (title, folders) in zip(panels, curves, strict=False):
        steps, returns = evaluations(folders)
        panel.plot(steps, returns.T, color="0.75", linewidth=0.8)
        middle = statistics.interquartile_mean(returns, axis=0)
        panel.plot(steps, middle, color="C0")
        panel.set(title=title, xlabel="environment steps", ylabel="return")
    for panel in panels[len(curves) :]:
        panel.set_visible(False)
    picture.savefig(path, dpi=100)


def evaluations(folders: Sequence[pathlib.Path]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the environment steps `[N]` and returns `[seeds, N]` of evaluations."""
    steps, returns = [], []
    for folder in folders:
        with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["evaluation_return"]]
        steps = [int(row["environment_steps"]) for row in rows]
        returns.append([float(row["evaluation_return"]) for row in rows])
    return np.array(steps), np.array(returns)
