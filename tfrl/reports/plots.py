"""Draws comparisons of agents: curves, profiles, probabilities of improvement.

As in R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021). The functions draw on axes of matplotlib, so that the caller arranges
and saves the figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tfrl.eval import statistics

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes


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
