"""Pictures of the score table: the agents on an environment, and strips of films."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.eval import statistics
from tfrl.reports import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks import score_curves

_FRAMES = 6  # In a strip.
_HEIGHT = 120  # Pixels of a strip.


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of an entry.

    Attributes:
      label: What the picture calls them.
      rows: Their rows in the table.
      curves: The evaluations of each of them; empty if a run has none in the file.
      reference: The published return that is its reference, or None.
    """

    label: str
    rows: Sequence[Mapping[str, str]]
    curves: Sequence[score_curves.Curve]
    reference: float | None

    def seconds(self) -> float:
        """Returns the median of the runs' seconds."""
        each = [row.get("processor_seconds") or row["seconds"] for row in self.rows]
        return float(np.median([float(seconds) for seconds in each]))

    def stack(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the steps `[N]` and returns `[seeds, N]` of the evaluations.

        The steps are the first run's. Another run's differ by an episode at most.

        Raises:
          ValueError: A run has fewer evaluations than the first one.
        """
        first = self.curves[0]
        for row, curve in zip(self.rows, self.curves, strict=True):
            if len(curve.returns) != len(first.returns):
                raise ValueError(
                    f"{self.label} on {row['environment']}, seed {row['seed']}: got "
                    f"{len(curve.returns)} evaluations, expected {len(first.returns)}, "
                    f"as of seed {self.rows[0]['seed']}; its metrics.csv was cut "
                    "short: train it again, by a word in its row's column `again`."
                )
        return first.steps, np.array([curve.returns for curve in self.curves])

    def returns(self) -> list[float]:
        """Returns the return of each run."""
        return [float(row["return"]) for row in self.rows]


def draw_environment(environment: str, entries: Sequence[Runs]) -> Figure:
    """Draws an environment's curves over steps and over seconds, and its final returns.

    A curve is the interquartile mean of an agent's runs, its band the 95 % bootstrap
    interval. A dot is the final return of one run, a line a published one.

    Args:
      environment: Its name, for the title.
      entries: The runs of each agent on it.
    """
    from matplotlib import figure

    drawn = [(i, runs) for i, runs in enumerate(entries) if runs.curves]
    height = max(2.8, 0.8 + 0.26 * len(entries))
    picture = figure.Figure(figsize=(10 if drawn else 5, height), layout="constrained")
    picture.suptitle(environment)
    columns = picture.subplots(1, 3 if drawn else 1, squeeze=False)[0]
    for i, runs in drawn:
        steps, returns = runs.stack()
        middle = statistics.stratified_bootstrap(
            statistics.pooled_interquartile_mean, returns, num_resamples=2000
        )
        seconds = steps * (runs.seconds() / max(1, steps[-1]))
        for axes, x in zip(columns, (steps, seconds), strict=False):
            plots.plot_curve(axes, x, middle, color=f"C{i}")
    if drawn:
        columns[0].set(xlabel="environment steps", ylabel="return")
        columns[1].set(xlabel="seconds of one core")
        for axes in columns[:2]:
            axes.set_xlim(left=0)
            plots.shorten_ticks(axes)
            axes.grid(alpha=0.3)
    _plot_dots(columns[-1], entries)
    return picture


def _plot_dots(axes: Axes, entries: Sequence[Runs]) -> None:
    """Draws the final returns of all runs, a row for each agent."""
    for i, runs in enumerate(entries):
        returns = runs.returns()
        # Dots that would hide each other are spread over the row.
        offsets = np.linspace(-0.25, 0.25, len(returns)) if len(returns) > 1 else [0]
        axes.scatter(returns, i + np.asarray(offsets), s=9, color=f"C{i}", zorder=3)
        if runs.reference is not None:
            ends = [i - 0.4, i + 0.4]
            axes.plot([runs.reference] * 2, ends, color="black", linewidth=1.5)
    axes.set_yticks(range(len(entries)), [runs.label for runs in entries])
    axes.set(ylim=(len(entries) - 0.5, -0.5), xlabel="final return")
    axes.grid(alpha=0.3, axis="x")


def save_strip(film: pathlib.Path, path: pathlib.Path) -> None:
    """Saves frames of a film side by side, from its first to its last.

    Args:
      film: The film.
      path: Where to save the picture.
    """
    import imageio.v3 as iio

    frames: Any = iio.imread(film)
    chosen = frames[np.linspace(0, len(frames) - 1, _FRAMES).astype(int)]
    step = max(1, chosen.shape[1] // _HEIGHT)
    path.parent.mkdir(exist_ok=True, parents=True)
    iio.imwrite(path, np.concatenate(list(chosen[:, ::step, ::step]), axis=1))
