"""README's picture: what libraries learn in how much processor time."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, ...]]  # Of each evaluation, the seconds and the return.


_SECONDS = (1, 3, 10, 30, 100, 300, 1000)  # Where the axis of seconds has a label.


class Panel(NamedTuple):
    """A problem, and how libraries learned it.

    Attributes:
      title: Its name.
      score: The return at which training ends.
      curves: The curves of each library's runs, by its title.
    """

    title: str
    score: float
    curves: Mapping[str, Sequence[Curve]]


class Theme(NamedTuple):
    """The colours of a light or a dark page."""

    ink: str
    faint: str
    lines: tuple[str, ...]  # Of the libraries, in the order of a panel.


# The files of the picture, by their names.
THEMES = {
    "time_to_score": Theme(
        "#1f2328", "#d1d9e0", ("#d1571b", "#f0a07c", "#1f6feb", "#6e7781")
    ),
    "time_to_score_dark": Theme(
        "#e6edf3", "#3d444d", ("#ff8c5a", "#b35f3b", "#58a6ff", "#9198a1")
    ),
}


def draw(panels: Sequence[Panel], theme: Theme) -> Figure:
    """Draws the panels side by side, with a line for each run and a mark at its end."""
    from matplotlib import figure

    made = figure.Figure(figsize=(9.6, 3.3), layout="constrained")
    for axes, panel in zip(made.subplots(1, len(panels)), panels, strict=True):
        _draw(axes, panel, theme)
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
        labelcolor=theme.ink,
    )
    return made


def _draw(axes: Axes, panel: Panel, theme: Theme) -> None:
    axes.axhline(panel.score, color=theme.faint, linewidth=1, linestyle="--")
    for (title, curves), colour in zip(panel.curves.items(), theme.lines, strict=True):
        for number, curve in enumerate(filter(None, curves)):
            seconds, returns = zip(*curve, strict=True)
            label = title if number == 0 else None
            axes.plot(seconds, returns, color=colour, linewidth=1.6, label=label)
            is_solved = returns[-1] >= panel.score
            axes.plot(
                seconds[-1:],
                returns[-1:],
                color=colour,
                marker="o" if is_solved else "x",
                markersize=6,
            )
    axes.set_title(panel.title, color=theme.ink, fontsize=11)
    axes.set_xlabel("processor seconds from the start of the program", color=theme.ink)
    axes.set_ylabel("greedy return", color=theme.ink)
    axes.set_xscale("log")
    first, last = axes.get_xlim()
    shown = [x for x in _SECONDS if first <= x <= last]
    axes.set_xticks(shown, [str(x) for x in shown])
    axes.minorticks_off()
    axes.tick_params(colors=theme.ink)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(theme.faint)


def save(figure: Figure, path: pathlib.Path) -> None:
    """Writes a picture with a transparent background, and without a date."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "tfrl", "svg.fonttype": "path"}):
        figure.savefig(path, transparent=True, metadata={"Date": None})
