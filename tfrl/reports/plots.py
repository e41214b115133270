"""Draws comparisons of agents: curves, profiles, probabilities of improvement.

As in R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021). `draw` makes a whole figure; the other functions draw on axes of
matplotlib, so that the caller arranges and saves the figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfrl.eval import statistics
from tfrl.reports import comparison_table
from tfrl.reports.comparison_table import Section

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(sections: Sequence[Section], metric: str) -> Figure:
    """Draws curves over steps and seconds, profiles and probabilities of each task.

    A group has the same colour in all panels. Bands and bars are 95 % intervals.

    Args:
      sections: The sections of the comparison, each a row of the figure.
      metric: The name of the score.
    """
    from matplotlib import colors, figure, patches

    names = sorted({row.group for each in sections for row in each.rows})
    color_of = {x: colors.to_hex(f"C{i}") for i, x in enumerate(names)}
    height = 3.3 * len(sections) + 0.3 * -(-len(names) // 3)
    picture = figure.Figure(figsize=(14, height), layout="constrained")
    grid = picture.subplots(len(sections), 4, squeeze=False)
    for panels, section in zip(grid, sections, strict=True):
        is_task = len(section.rows[0].scores) == 1
        shown = (is_task, is_task, section.has_mean, bool(section.improvements))
        for axes, is_shown in zip(panels, shown, strict=True):
            axes.set_visible(is_shown)
        for row in section.rows if is_task else ():
            curve, color = comparison_table.mean(row.scores), color_of[row.group]
            for axes, x in zip(panels, (row.steps, row.seconds), strict=False):
                plot_curve(axes, x, curve, color=color)
        units = ("environment steps", "seconds")
        for axes, unit in zip(panels, units, strict=False):
            axes.set(xlabel=unit, ylabel=f"{literal(metric)}, IQM")
            axes.set_xlim(left=0)
            axes.locator_params(axis="x", nbins=5)
            axes.grid(alpha=0.3)
        panels[2].set_prop_cycle(color=[color_of[x.group] for x in section.rows])
        _draw_profiles(panels[2], section)
        panels[2].set_xlabel(f"last {literal(metric)}")
        if found := section.improvements:
            words = {x: textwrap.fill(f"over {x}", 24) for x in found}
            wrapped = {literal(words[x]): found[x] for x in found}
            plot_probability_of_improvement(panels[3], wrapped)
            title = textwrap.fill(f"{section.title}: {section.rows[0].group}", 40)
            panels[3].set_title(literal(title), fontsize=10)
        panels[0].set_title(literal(section.title), loc="left")
    marks = [patches.Patch(color=color) for color in color_of.values()]
    texts = [literal(name) for name in names]
    picture.legend(marks, texts, loc="outside upper center", ncols=3, frameon=False)
    return picture


def plot_curve(
    axes: Axes,
    x: npt.ArrayLike,
    curve: statistics.Estimate,
    label: str | None = None,
    color: str | None = None,
) -> None:
    """Draws a learning curve, with its interval as a band; one evaluation as a dot.

    Args:
      axes: The axes to draw on.
      x: Where the agent was evaluated, such as environment steps, `[N]`.
      curve: The `stratified_bootstrap` of its scores, `[N]`, such as of their
        `pooled_interquartile_mean`.
      label: Its name in a legend.
      color: Its colour; None for the next one.
    """
    is_dot = np.size(x) == 1  # A line and a band of one point would be invisible.
    (line,) = axes.plot(x, curve.value, "o" * is_dot, color=color, label=label)
    if is_dot:
        axes.vlines(x, curve.lower, curve.upper, color=line.get_color(), alpha=0.5)
        return
    axes.fill_between(
        x, curve.lower, curve.upper, color=line.get_color(), alpha=0.2, linewidth=0
    )


def literal(text: str) -> str:
    """Returns text for matplotlib that shows its dollars, and so no mathematics."""
    return text.replace("$", r"\$")


def shorten_ticks(axes: Axes) -> None:
    """Labels at most five steps of the horizontal axis, with k for 1,000 and so on."""
    from matplotlib import ticker  # Not at the top: its import takes long.

    axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def plot_performance_profiles(
    axes: Axes, thresholds: npt.ArrayLike, profiles: Mapping[str, statistics.Estimate]
) -> None:
    """Draws the profile of each agent, with its interval as a band.

    Args:
      axes: The axes to draw on.
      thresholds: The scores `[N]` at which the profiles were computed, in ascending
        order.
      profiles: Maps the name of an agent to the `stratified_bootstrap` of its
        `performance_profile`, `[N]`.

    Raises:
      ValueError: If a profile does not have a value for each threshold.
    """
    thresholds = np.asarray(thresholds)
    for name, profile in profiles.items():
        if np.shape(profile.value) != thresholds.shape:
            raise ValueError(
                f"profiles[{name!r}]: got shape {np.shape(profile.value)}, expected "
                f"{thresholds.shape}, the shape of thresholds; compute it at these "
                "thresholds."
            )
        (line,) = axes.plot(
            thresholds, profile.value, drawstyle="steps-post", label=name
        )
        axes.fill_between(
            thresholds,
            profile.lower,
            profile.upper,
            step="post",
            color=line.get_color(),
            alpha=0.15,
            linewidth=0,
        )
    axes.set(xlabel="score", ylabel="fraction of runs above", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def plot_probability_of_improvement(
    axes: Axes, improvements: Mapping[str, statistics.Estimate]
) -> None:
    """Draws each probability as a mark on its interval, with a line at one half.

    Args:
      axes: The axes to draw on.
      improvements: Maps a label such as "SAC over TD3" to the `stratified_bootstrap` of
        the `probability_of_improvement`; the first entry is drawn at the top.
    """
    for row, improvement in enumerate(improvements.values()):
        ends = [improvement.lower, improvement.upper]
        axes.plot(
            ends, [row, row], color="C0", linewidth=7, alpha=0.35, solid_capstyle="butt"
        )
        axes.plot(improvement.value, row, color="C0", marker="o")
    axes.axvline(0.5, color="0.5", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(improvements)), list(improvements))
    axes.set(xlim=(-0.03, 1.03), ylim=(len(improvements) - 0.5, -0.5))
    axes.set(xlabel="probability of improvement")
    axes.grid(alpha=0.3, axis="x")


def _draw_profiles(axes: Axes, section: Section) -> None:
    last = np.concatenate([x for row in section.rows for x in row.last])
    thresholds = statistics.profile_thresholds(last)

    def profile(*scores: np.ndarray) -> np.ndarray:
        pooled = np.concatenate(scores, axis=-2)
        return statistics.performance_profile(pooled, thresholds)

    found = {
        row.group: comparison_table.estimate(profile, row.last) for row in section.rows
    }
    plot_performance_profiles(axes, thresholds, found)
    axes.legend().remove()
