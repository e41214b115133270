"""The figures of a report, drawn by matplotlib as SVG."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.reports import plots
from tfrl.reports.evidence import Evidence
from tfrl.train.runs import columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Text and axes are drawn in this color, which becomes the page's own.
_INK = "#010203"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-3, 5),
}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
      title: Its title.
      names: The numbers that it shows.
      text: What to look for, one sentence.
      is_log: Whether the vertical axis is logarithmic.
    """

    title: str
    names: tuple[str, ...]
    text: str
    is_log: bool = False

    @property
    def unit(self) -> str:
        """The unit of its numbers; empty if they have none, or several."""
        found = [columns.find(name) for name in self.names]
        units = {column.unit for column in found if column is not None}
        return units.pop() if len(units) == 1 else ""


FIGURES = (
    Figure(
        "Returns",
        ("evaluation_return", "average_return"),
        "Evaluated greedily, with the 95 % interval of the mean, and while collecting.",
    ),
    Figure(
        "Rating",
        ("elo",),
        "On Elo's scale, by games against earlier policies; 0 before training. It "
        "should rise, and level off where all games are drawn.",
    ),
    Figure(
        "Regret",
        ("cumulative_regret",),
        "By how much the best arms would have paid more so far, expected, in one "
        "environment. It should level off.",
    ),
    Figure(
        "Values",
        ("predicted_return", "realized_return"),
        "The discounted return that the agent predicts at the first step of an "
        "episode, and the actual one. They should approach each other.",
    ),
    Figure("Loss", ("loss",), "Its level says little; a rise without end is bad."),
    Figure(
        "Errors of the values",
        ("td_error", "q_value"),
        "The mean size of the errors and the mean value, in the losses' units.",
    ),
    Figure(
        "Explained variance",
        ("explained_variance",),
        "1 is a critic that predicts all, 0 one that predicts nothing.",
    ),
    Figure(
        "Entropy",
        ("entropy", "entropy_target"),
        "Of the policy: it should fall slowly, and not to the floor at once.",
    ),
    Figure(
        "Exploration",
        ("epsilon", "temperature", "alpha"),
        "The probability of random actions, or the weight of the entropy.",
    ),
    Figure(
        "Change of the policy in an update",
        ("approx_kl", "clip_fraction"),
        "KL divergence of about 0.01, and a clipped share of 0.05 to 0.3, are usual.",
    ),
    Figure(
        "Advantages above 0",
        ("positive_advantages",),
        "Their share before they are normalized; a half is usual.",
    ),
    Figure(
        "Actions",
        ("actions_at_bound", "actions_reach"),
        "The share at a bound, and the share of the range between the bounds that they "
        "span.",
    ),
    Figure(
        "Gradients",
        ("gradient_norm", "actor_gradient_norm"),
        "Their norm before clipping.",
        is_log=True,
    ),
    Figure(
        "Change of the weights in an update",
        ("weights_change", "actor_weights_change", "target_weights_change"),
        "As a share of their norm; 1e-5 to 1e-3 is usual.",
        is_log=True,
    ),
    Figure(
        "Dormant units",
        ("dormant_units", "dormant_layer"),
        "The share of hidden units that hardly ever differ from 0, of all and of one "
        "layer.",
    ),
    Figure(
        "Replay",
        ("replay_size",),
        "Frames in the buffer, which is the age of its oldest frame in steps.",
    ),
    Figure(
        "Priorities",
        ("priority_evenness",),
        "The share of the frames that priorities let count; 1 is uniform.",
    ),
    Figure("Learning rate", ("learning_rate", "actor_learning_rate"), "Of Adam."),
    Figure("Speed", ("steps_per_second",), "Environment steps a second of training."),
)


def draw(figure: Figure, runs: Sequence[tuple[str, Evidence]]) -> str | None:
    """Returns a figure as SVG; None if no run has measured its numbers.

    Args:
      figure: The figure.
      runs: The runs, by their labels.
    """
    lines = [
        (label, run, name, i, j, pairs)
        for i, (label, run) in enumerate(runs)
        for j, name in enumerate(figure.names)
        if len(pairs := run.column(name, _horizontal([(label, run)])))
    ]
    if not lines:
        return None
    import matplotlib as mpl
    from matplotlib.figure import Figure as MplFigure

    with mpl.rc_context({**_STYLE, "svg.hashsalt": figure.title}):
        canvas = MplFigure(figsize=(5.2, 3.1))
        axes = canvas.subplots()
        # A layout that is computed takes as long as the drawing.
        canvas.subplots_adjust(left=0.17, right=0.98, top=0.92, bottom=0.17)
        for line in lines:
            _draw_line(axes, *line, len(runs))
        if figure.is_log:
            axes.set_yscale("log")
        axes.set_xlabel(_horizontal(runs).replace("_", " "))
        axes.set_ylabel(figure.unit)
        plots.shorten_ticks(axes)
        axes.grid(alpha=0.25)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=9)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace(_INK, "currentColor")


def _horizontal(runs: Sequence[tuple[str, Evidence]]) -> str:
    has_steps = any(
        run.rows and run.rows[-1].get("environment_steps") for _, run in runs
    )
    return "environment_steps" if has_steps else "train_steps"


def _draw_line(
    axes: Axes,
    label: str,
    run: Evidence,
    name: str,
    i: int,
    j: int,
    pairs: np.ndarray,
    num_runs: int,
) -> None:
    """Draws number `j` of a figure, of run `i`."""
    words = name.replace("_", " ")
    color = f"C{i if num_runs > 1 else j}"
    (line,) = axes.plot(
        *pairs.T,
        color=color,
        linestyle=("-", "--", ":")[j % 3] if num_runs > 1 else "-",
        linewidth=1.6,
        label=plots.literal(words if num_runs == 1 else f"{label}: {words}"),
        marker="o" if len(pairs) == 1 else None,
    )
    if name == "evaluation_return":
        half = _half_interval(run, _horizontal([(label, run)]))
        if len(half) == len(pairs):
            x, mean = pairs.T
            axes.fill_between(
                x, mean - half, mean + half, color=line.get_color(), alpha=0.2
            )


def _half_interval(run: Evidence, horizontal: str) -> np.ndarray:
    """Returns half the width of the 95 % interval of each mean return, `[N]`."""
    counts = [len(row.get("evaluation_returns", ())) for row in run.rows]
    deviation = run.column("evaluation_return_std", horizontal)[:, 1]
    degrees = max(max(counts, default=0) - 1, 1)
    return np.asarray(1.96 * deviation / np.sqrt(degrees))
