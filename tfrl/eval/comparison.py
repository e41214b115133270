"""Compares groups of runs by their learning curves: a table, a figure and a sentence.

After R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021); the numbers come from `statistics`, the panels from `plots`.

>>> import numpy as np
>>> from tfrl.eval import comparison
>>> def runs(*scores):
...     x = np.array([0, 1000])
...     return [comparison.Curve("run", x, x / 500, np.array([0, s])) for s in scores]
>>> new, old = runs(9, 8, 7, 9), runs(1, 2, 1, 3)
>>> groups = {"new": {"CartPole-v1": new}, "old": {"CartPole-v1": old}}
>>> print(comparison.compare(groups).sentence)
new is ahead of old: probability of improvement 1.00 [1.00, 1.00].
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import pathlib
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.eval import plots, statistics

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IMPROVEMENT = "probability of improvement"
_FEW = 10  # Runs; the intervals of fewer are too short.
_MANY = 1_000  # Seeds; a larger number is not worth its digits.


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """The evaluations of one run.

    Attributes:
      name: The run's name, for messages.
      steps: The environment steps before each evaluation, ascending, `[E]`.
      seconds: The seconds of training before each, `[E]`.
      scores: The score of each, `[E]`.
    """

    name: str
    steps: np.ndarray
    seconds: np.ndarray
    scores: np.ndarray

    def nearest(self, steps: npt.ArrayLike) -> np.ndarray:
        """Returns the numbers of the evaluations nearest to steps `[N]`, `[N]`."""
        return np.abs(self.steps - np.reshape(steps, [-1, 1])).argmin(axis=-1)


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """A group of runs on one task, or on all of them.

    Attributes:
      group: The group's name.
      scores: The scores of its runs on each task, `[num_runs, N]`.
      steps: The environment steps of these, `[N]`.
      seconds: The median of its runs' seconds there, `[N]`.
    """

    group: str
    scores: Sequence[np.ndarray]
    steps: np.ndarray
    seconds: np.ndarray

    @property
    def last(self) -> list[np.ndarray]:
        """The last scores on each task, `[num_runs, 1]`."""
        return [scores[:, -1:] for scores in self.scores]

    @property
    def num_runs(self) -> int:
        """The number of its runs, on the task with the fewest."""
        return min(map(len, self.scores))

    def mean(self, scores: Sequence[np.ndarray]) -> statistics.Estimate:
        """Returns the interquartile mean of `scores` or of `last`, `[N]`."""
        return statistics.stratified_bootstrap(
            statistics.pooled_interquartile_mean,
            *scores,
            num_resamples=10_000 if scores[0].shape[1] == 1 else 2_000,
        )

    def over(self, other: Row) -> list[np.ndarray]:
        """Returns the last scores of both on each task, in turn."""
        return [x for pair in zip(self.last, other.last, strict=True) for x in pair]


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """The groups on one task, or on all tasks together.

    Attributes:
      title: The name of the task.
      rows: The groups, the one first that has the highest mean probability of
        improvement over all.
      improvements: The probability that the first group is an improvement over each
        other one, by its name.
      has_mean: Whether the scores mean the same on all its tasks.
    """

    title: str
    rows: Sequence[Row]
    improvements: Mapping[str, statistics.Estimate]
    has_mean: bool

    @property
    def is_task(self) -> bool:
        """Whether it is of one task."""
        return len(self.rows[0].scores) == 1

    @functools.cached_property
    def records(self) -> list[dict[str, Any]]:
        """The numbers of each group by their names; None for what is unknown."""
        found = []
        for row in self.rows:
            last, iqm = np.concatenate(row.last), row.mean(row.last)
            record: dict[str, Any] = {
                "environment": self.title,
                "group": row.group,
                "seeds": row.num_runs,
                **_numbers("iqm", iqm if self.has_mean else None, row.num_runs > 1),
                "mean": np.mean(last) if self.has_mean else None,
                "median": np.median(last) if self.has_mean else None,
                "best": max(map(np.max, row.scores)) if self.has_mean else None,
                "steps": row.steps[-1] if self.is_task else None,
                "seconds": row.seconds[-1] if self.is_task else None,
            }
            has_ends = min(row.num_runs, self.rows[0].num_runs) > 1
            over = self.improvements.get(row.group)
            found.append({**record, **_numbers("improvement", over, has_ends)})
        return found

    @property
    def sentence(self) -> str:
        """Which group is ahead, or how many more runs would show it."""
        first, *others = self.records
        num_tasks = len(self.rows[0].scores)
        if not others:
            return f"{first['group']} is the only group, so nothing is compared."
        if any(record["seeds"] == 1 for record in self.records):
            return (
                "A group with a single run cannot be compared; train at least "
                f"{statistics.runs_to_decide(1.0, num_tasks)} seeds of each."
            )

        def is_behind(record: Mapping[str, Any]) -> bool:
            is_enough = statistics.is_enough(first["seeds"], record["seeds"], num_tasks)
            return is_enough and bool(record["improvement_lower"] > 0.5)

        near = min(others, key=lambda each: (is_behind(each), each["improvement"]))
        open_ones = [each["group"] for each in others if not is_behind(each)]
        found = f"{'at least ' * (len(others) > 1)}{_text(near, 'improvement', 2)}"
        if not open_ones:
            names = _listed([each["group"] for each in others])
            return f"{first['group']} is ahead of {names}: {_IMPROVEMENT} {found}."
        needed = statistics.runs_to_decide(near["improvement"], num_tasks)
        more = max(needed - min(first["seeds"], near["seeds"]), 1)
        number = f"about {more}" if more <= _MANY else f"over {_MANY:,}"
        return (
            f"{first['group']} cannot be told apart from {_listed(open_ones)}: "
            f"{_IMPROVEMENT} {found}; {number} more seed{'s' * (more > 1)} a group "
            "would decide it."
        )

    def table(self) -> str:
        """Returns a Markdown table, whose columns are straight in a terminal, too."""
        columns = {
            "group": [each["group"] for each in self.records],
            "seeds": [str(each["seeds"]) for each in self.records],
            "IQM [95 %]": [_text(each, "iqm", 1) for each in self.records],
            "best": [_number(each["best"], ".1f") for each in self.records],
            "steps": [_number(each["steps"], ",.0f") for each in self.records],
            "seconds": [_number(each["seconds"], ",.3g") for each in self.records],
            "P(first > this) [95 %]": [
                _text(each, "improvement", 2) for each in self.records
            ],
        }
        padded = []
        for name, cells in columns.items():
            width = max(map(len, [name, *cells]))
            if any(cells):
                padded.append([f"{x:{width}}" for x in (name, "-" * width, *cells)])
        return "\n".join(
            f"| {' | '.join(cells)} |" for cells in zip(*padded, strict=True)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of groups of runs; as text, it is what `compare.md` holds.

    Attributes:
      sections: One for each task; with several tasks, the last one is of all together.
      notes: What a reader has to know about the runs.
      metric: The name of the score.
    """

    sections: Sequence[Section]
    notes: Sequence[str]
    metric: str

    @property
    def sentence(self) -> str:
        """What follows, in one sentence."""
        return self.sections[-1].sentence

    def __str__(self) -> str:
        parts = [
            part
            for each in self.sections
            for part in (f"{each.title}, {self.metric}:", each.table())
        ]
        return "\n\n".join([*parts, *self.notes, self.sentence])

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes `compare.md`, `compare.csv` and `compare.png` to a folder.

        Args:
          folder: The folder, which is made if it does not exist.
        """
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / "compare.md").write_text(f"{self}\n", encoding="utf-8")
        records = [record for each in self.sections for record in each.records]
        with open(path / "compare.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        self.draw().savefig(path / "compare.png", dpi=120)

    def draw(self) -> Figure:
        """Draws curves over steps and seconds, profiles and probabilities of each task.

        A group has the same colour in all panels. Bands and bars are 95 % intervals.
        """
        from matplotlib import colors as colors_lib
        from matplotlib import figure, patches

        names = sorted({row.group for each in self.sections for row in each.rows})
        colors = {x: colors_lib.to_hex(f"C{i}") for i, x in enumerate(names)}
        height = 3.3 * len(self.sections) + 0.3 * -(-len(names) // 3)
        picture = figure.Figure(figsize=(14, height), layout="constrained")
        grid = picture.subplots(len(self.sections), 4, squeeze=False)
        for line, section in zip(grid, self.sections, strict=True):
            for axes in line[:2]:
                axes.set_visible(section.is_task)
            if section.is_task:
                self._draw_curves(line[:2], section, colors)
            line[2].set_visible(section.has_mean)
            if section.has_mean:
                _draw_profiles(line[2], section, colors)
            line[2].set(xlabel=f"last {self.metric}")
            labels = {
                textwrap.fill(f"over {name}", 24): found
                for name, found in section.improvements.items()
            }
            plots.plot_probability_of_improvement(line[3], labels)
            line[3].set_visible(bool(labels))
            line[3].set_title(textwrap.fill(section.rows[0].group, 40), fontsize=10)
            line[0 if section.is_task else 3].set_title(section.title, loc="left")
        lines = [patches.Patch(color=color) for color in colors.values()]
        picture.legend(lines, names, loc="outside upper center", ncols=3, frameon=False)
        return picture

    def _draw_curves(
        self, line: Sequence[Axes], section: Section, colors: Mapping[str, str]
    ) -> None:
        for row in section.rows:
            curve = row.mean(row.scores)
            for axes, x in zip(line, (row.steps, row.seconds), strict=True):
                plots.plot_curve(axes, x, curve, color=colors[row.group])
        for axes, unit in zip(line, ("environment steps", "seconds"), strict=True):
            axes.set(xlabel=unit, ylabel=f"{self.metric}, IQM")
            axes.set_xlim(left=0)
            axes.grid(alpha=0.3)


def compare(
    groups: Mapping[str, Mapping[str, Sequence[Curve]]],
    *,
    metric: str = "return",
    normalize: Mapping[str, tuple[float, float]] | None = None,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compares groups of runs at the steps that all runs of a task have reached.

    Args:
      groups: The runs of each group on each task. With several tasks, the last section
        compares the groups on the tasks that all of them have.
      metric: The name of the score, of which more is better.
      normalize: The scores of each task that become 0 and 1, such as an untrained and a
        solved one. None leaves the scores, which then have no mean over tasks.
      notes: What a reader has to know besides.

    Raises:
      ValueError: There are no runs, or `normalize` lacks a task.
    """
    tasks = list(dict.fromkeys(task for runs in groups.values() for task in runs))
    ranges = dict.fromkeys(tasks, (0.0, 1.0)) if normalize is None else normalize
    missing = [task for task in tasks if task not in ranges]
    if missing or not tasks:
        raise ValueError(
            f"normalize: got no scores of {missing[0]!r} that become 0 and 1, expected "
            "them of each task; add them."
            if missing
            else "groups: got no runs, expected some; name folders of runs."
        )
    notes, sections = list(notes), []
    for task in tasks:
        own = {name: runs[task] for name, runs in groups.items() if runs.get(task)}
        curves = [curve for runs in own.values() for curve in runs]
        shortest = min(curves, key=lambda curve: curve.steps[-1])
        limit = shortest.steps[-1]
        # Episodes and rollouts end a little later.
        longer = sum(curve.steps[-1] > 1.05 * limit for curve in curves)
        if longer:
            notes.append(
                f"{task}: compared at {limit:,.0f} steps, the end of {shortest.name}; "
                f"{longer} of {len(curves)} runs are longer."
            )
        rows = [_row(name, runs, limit, *ranges[task]) for name, runs in own.items()]
        sections.append(_section(task, rows, has_mean=True))
    common = [each.rows for each in sections if len(each.rows) == len(groups)]
    if len(tasks) > 1 and common:
        title = f"all {len(common)} environments"
        rows = [_together(name, common) for name in groups]
        sections.append(_section(title, rows, has_mean=normalize is not None))
    elif len(tasks) > 1:
        notes.append("No environment has runs of all groups; each is compared alone.")
    return Comparison(sections, [*notes, *_about_numbers(sections)], metric)


def _row(
    name: str, runs: Sequence[Curve], limit: float, low: float, high: float
) -> Row:
    """Returns the row of a group on a task, at the evaluations of its first run."""
    steps = runs[0].steps[: runs[0].nearest(limit)[0] + 1]
    chosen = [run.nearest(steps) for run in runs]
    scores, seconds = (
        np.stack([getattr(run, x)[i] for run, i in zip(runs, chosen, strict=True)])
        for x in ("scores", "seconds")
    )
    scores = (scores - low) / (high - low)
    return Row(name, [scores], steps, np.median(seconds, axis=0))


def _together(name: str, common: Sequence[Sequence[Row]]) -> Row:
    """Returns the row of a group on all tasks: its last scores."""
    rows = [row for rows in common for row in rows if row.group == name]
    scores = [last for row in rows for last in row.last]
    return Row(name, scores, np.zeros(1), np.zeros(1))


def _section(title: str, rows: Sequence[Row], *, has_mean: bool) -> Section:
    """Orders the groups, and compares the first one with each other."""
    improvement = statistics.mean_probability_of_improvement

    def rank(row: Row) -> tuple[float, float]:
        each = [improvement(*row.over(other)) for other in rows]
        return -float(np.mean(each)), -float(np.mean(np.concatenate(row.last)))

    first, *others = ordered = sorted(rows, key=rank)
    improvements = {
        other.group: statistics.stratified_bootstrap(improvement, *first.over(other))
        for other in others
    }
    return Section(title, ordered, improvements, has_mean)


def _about_numbers(sections: Sequence[Section]) -> list[str]:
    """Returns notes about groups with few runs."""
    rows = [row for section in sections for row in section.rows]
    single = list(dict.fromkeys(row.group for row in rows if row.num_runs == 1))
    notes = [f"One run, and so no interval: {_listed(single)}."] if single else []
    if any(1 < row.num_runs < _FEW for row in rows):
        notes.append(
            f"Intervals of fewer than {_FEW} runs are too short: those of 5 hold the "
            "true value in 8 of 10 cases."
        )
    return notes


def _draw_profiles(axes: Axes, section: Section, colors: Mapping[str, str]) -> None:
    last = [np.concatenate(row.last) for row in section.rows]
    thresholds = statistics.profile_thresholds(np.concatenate(last))
    profile = functools.partial(statistics.performance_profile, thresholds=thresholds)
    axes.set_prop_cycle(color=[colors[row.group] for row in section.rows])
    profiles = {
        row.group: statistics.stratified_bootstrap(
            lambda *scores: profile(np.concatenate(scores, axis=-2)),
            *row.last,
            num_resamples=2_000,
        )
        for row in section.rows
    }
    plots.plot_performance_profiles(axes, thresholds, profiles)
    axes.legend().remove()


def _numbers(
    name: str, found: statistics.Estimate | None, has_ends: bool
) -> dict[str, float | None]:
    """Returns an estimate as entries of a record."""
    values = dict.fromkeys((name, f"{name}_lower", f"{name}_upper"))
    if found is None:
        return values
    known = (found.value, found.lower, found.upper)[: 3 if has_ends else 1]
    return values | dict(
        zip(values, (float(np.squeeze(x)) for x in known), strict=False)
    )


def _text(record: Mapping[str, Any], name: str, digits: int) -> str:
    """Returns an estimate in a record as text."""
    value, *ends = (
        _number(record[f"{name}{end}"], f".{digits}f")
        for end in ("", "_lower", "_upper")
    )
    return f"{value} [{', '.join(ends)}]" if all(ends) else value


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
