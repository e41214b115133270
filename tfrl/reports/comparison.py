"""Compares groups of runs by their learning curves: a table, a figure and a sentence.

After R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021); the numbers come from `statistics`, the panels from `plots`.

>>> import numpy as np
>>> from tfrl.reports import comparison
>>> def runs(*scores):
...     x = np.array([0, 1000])
...     return [comparison.Curve("run", x, x / 500, np.array([0, s])) for s in scores]
>>> new, old = runs(9, 8, 7, 9), runs(1, 2, 1, 3)
>>> groups = {"new": {"CartPole-v1": new}, "old": {"CartPole-v1": old}}
>>> print(comparison.compare(groups).sentence)
new is ahead of old: probability of improvement 1.00 [0.55, 1.00], p = 0.029.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import pathlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.eval import rank_tests, statistics
from tfrl.reports import plots
from tfrl.system import files

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 10  # Runs; the bootstrap intervals of fewer are too short.
_LEVEL = 0.05  # The chance of equal groups to differ.
_BESIDE = 0.05  # Episodes and rollouts end so much later than planned.
_MANY = 1_000  # Seeds; a larger number is not worth its digits.
_ENDS = ("", "_lower", "_upper")


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

    def at(self, steps: npt.ArrayLike) -> np.ndarray:
        """Returns the numbers of the evaluations that count at steps `[N]`, `[N]`.

        The nearest one that is before a step, or up to 5 % after it. It is -1 if there
        is none, or if the policy of the nearest one had not been trained yet.
        """
        wanted = np.reshape(steps, [-1, 1])
        found = np.abs(self.steps - wanted).argmin(axis=-1)
        found = found - (self.steps[found] > (1 + _BESIDE) * wanted[:, 0])
        is_untrained = (self.steps[found] == 0) & (wanted[:, 0] > 0)
        return np.where(is_untrained, -1, found)


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """A group of runs on one task, or on all of them.

    Attributes:
      group: The group's name.
      scores: The scores of its runs on each task, `[num_runs, N]`.
      steps: The environment steps of these, `[N]`; NaN for all tasks.
      seconds: The median of its runs' seconds there, `[N]`.
      ends: The steps of each run's evaluation that counts as its last, `[num_runs]`;
        NaN for all tasks.
    """

    group: str
    scores: Sequence[np.ndarray]
    steps: np.ndarray
    seconds: np.ndarray
    ends: np.ndarray

    @property
    def last(self) -> list[np.ndarray]:
        """The last scores on each task, `[num_runs, 1]`."""
        return [scores[:, -1:] for scores in self.scores]

    def over(self, other: Row) -> list[np.ndarray]:
        """Returns the last scores of both on each task, in turn."""
        return [x for pair in zip(self.last, other.last, strict=True) for x in pair]


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """The groups on one task, or on all tasks together.

    Attributes:
      title: The name of the task.
      rows: The groups. The first has the highest mean probability of improvement over
        all others.
      improvements: The probability that the first group is an improvement over each
        other one, by its name.
      has_mean: Whether the scores mean the same on all its tasks.
    """

    title: str
    rows: Sequence[Row]
    improvements: Mapping[str, rank_tests.Improvement]
    has_mean: bool

    @functools.cached_property
    def records(self) -> list[dict[str, Any]]:
        """The numbers of each group by their names; NaN for what is unknown."""
        found = []
        for row in self.rows:
            iqm, best = _mean(row.last), max(map(np.max, row.scores))
            record: dict[str, Any] = {"environment": self.title, "group": row.group}
            record["seeds"] = min(map(len, row.scores))
            record |= _numbers("iqm", iqm if self.has_mean else None)
            record["best"] = best if self.has_mean else np.nan
            record |= {"steps": np.min(row.ends), "seconds": row.seconds[-1]}
            improvement = self.improvements.get(row.group)
            record |= _numbers("improvement", improvement)
            record["p_value"] = improvement.p_value if improvement else np.nan
            found.append(record)
        return found

    @property
    def sentence(self) -> str:
        """Which group is ahead, or how many more runs would show it."""
        first, *others = self.records
        num_tasks = len(self.rows[0].scores)
        if not others:
            return f"{first['group']} is the only group, so nothing is compared."
        if any(record["seeds"] == 1 for record in self.records):
            needed = statistics.runs_to_decide(1.0, num_tasks)
            return (
                "A group with a single run cannot be compared; train at least "
                f"{needed} seeds of each."
            )
        undecided = [record for record in others if not record["p_value"] <= _LEVEL]
        named = undecided or others
        near = min(named, key=lambda record: record["improvement"])
        least, most = ("at least ", "at most ") if len(named) > 1 else ("", "= ")
        found = (
            f"{_listed([record['group'] for record in named])}: probability of "
            f"improvement {least}{_text(near, 'improvement', 2)}, p "
            f"{most}{max(record['p_value'] for record in named):.2g}"
        )
        if not undecided:
            return f"{first['group']} is ahead of {found}."
        needed = statistics.runs_to_decide(near["improvement"], num_tasks)
        more = max(needed - min(first["seeds"], near["seeds"]), 1)
        number = f"about {more}" if more <= _MANY else f"over {_MANY:,}"
        return (
            f"{first['group']} cannot be told apart from {found}; {number} more "
            f"seed{'s' * (more > 1)} a group would decide it."
        )

    def table(self) -> str:
        """Returns a Markdown table, whose columns are aligned in a terminal, too."""
        known = [x["iqm"] for x in self.records if np.isfinite(x["iqm"])]
        digits = 1 if np.max(np.abs(known), initial=0) >= 10 else 3
        forms = {
            "group": lambda record: record["group"],
            "seeds": lambda record: str(record["seeds"]),
            "IQM [95 %]": lambda record: _text(record, "iqm", digits),
            "best": lambda record: _number(record["best"], f".{digits}f"),
            "steps": lambda record: _number(record["steps"], ",.0f"),
            "seconds": lambda record: _number(record["seconds"], ",.3g"),
            "P(first > this) [95 %]": lambda record: _text(record, "improvement", 2),
        }
        columns = []
        for name, form in forms.items():
            cells = [form(record) for record in self.records]
            width = max(map(len, [name, *cells]))
            if any(cells):
                columns.append([f"{x:{width}}" for x in (name, "-" * width, *cells)])
        lines = zip(*columns, strict=True)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of groups of runs; as text, it is what `compare.md` holds.

    Attributes:
      sections: One for each task; then one for all tasks that every group has, if there
        are several.
      notes: Remarks about the runs, for readers.
      metric: The name of the score.
    """

    sections: Sequence[Section]
    notes: Sequence[str]
    metric: str

    @property
    def sentence(self) -> str:
        """The conclusion for all tasks together, or for each task separately."""
        *_, last = self.sections
        if len(self.sections) == 1 or len(last.rows[0].scores) > 1:
            return last.sentence
        return " ".join(f"{each.title}: {each.sentence}" for each in self.sections)

    def __str__(self) -> str:
        parts = [f"{x.title}, {self.metric}:\n\n{x.table()}" for x in self.sections]
        return "\n\n".join([*parts, *self.notes, self.sentence])

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes `compare.md`, `compare.csv` and `compare.png` to a folder.

        Args:
          folder: The folder, which is made if it does not exist.
          overwrite: Whether to replace those of an older comparison.

        Raises:
          ValueError: There is an older one, or a file of another kind.
        """
        path = pathlib.Path(folder)
        records = [record for each in self.sections for record in each.records]
        mark = ",".join(list(records[0])[:3]).encode()
        is_own = files.bears(path / "compare.csv", mark)
        for name in ("compare.md", "compare.csv", "compare.png"):
            files.check_replaceable(
                "folder", path / name, is_own=is_own, overwrite=overwrite
            )
        # The first one has the mark, also if the next ones are never written.
        with (
            files.replacing(path / "compare.csv") as new,
            open(new, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        files.write_text(path / "compare.md", f"{self}\n")
        with files.replacing(path / "compare.png") as new:
            self.draw().savefig(new, dpi=120)

    def draw(self) -> Figure:
        """Draws curves over steps and seconds, profiles and probabilities of each task.

        A group has the same colour in all panels. Bands and bars are 95 % intervals.
        """
        from matplotlib import colors, figure, patches

        names = sorted({row.group for each in self.sections for row in each.rows})
        color_of = {x: colors.to_hex(f"C{i}") for i, x in enumerate(names)}
        height = 3.3 * len(self.sections) + 0.3 * -(-len(names) // 3)
        picture = figure.Figure(figsize=(14, height), layout="constrained")
        grid = picture.subplots(len(self.sections), 4, squeeze=False)
        for panels, section in zip(grid, self.sections, strict=True):
            is_task = len(section.rows[0].scores) == 1
            shown = (is_task, is_task, section.has_mean, bool(section.improvements))
            for axes, is_shown in zip(panels, shown, strict=True):
                axes.set_visible(is_shown)
            for row in section.rows if is_task else ():
                curve, color = _mean(row.scores), color_of[row.group]
                for axes, x in zip(panels, (row.steps, row.seconds), strict=False):
                    plots.plot_curve(axes, x, curve, color=color)
            units = ("environment steps", "seconds")
            for axes, unit in zip(panels, units, strict=False):
                axes.set(xlabel=unit, ylabel=f"{plots.literal(self.metric)}, IQM")
                axes.set_xlim(left=0)
                axes.locator_params(axis="x", nbins=5)
                axes.grid(alpha=0.3)
            panels[2].set_prop_cycle(color=[color_of[x.group] for x in section.rows])
            _draw_profiles(panels[2], section)
            panels[2].set_xlabel(f"last {plots.literal(self.metric)}")
            if found := section.improvements:
                words = {x: textwrap.fill(f"over {x}", 24) for x in found}
                wrapped = {plots.literal(words[x]): found[x] for x in found}
                plots.plot_probability_of_improvement(panels[3], wrapped)
                title = textwrap.fill(f"{section.title}: {section.rows[0].group}", 40)
                panels[3].set_title(plots.literal(title), fontsize=10)
            panels[0].set_title(plots.literal(section.title), loc="left")
        marks = [patches.Patch(color=color) for color in color_of.values()]
        texts = [plots.literal(name) for name in names]
        picture.legend(marks, texts, loc="outside upper center", ncols=3, frameon=False)
        return picture


def compare(
    groups: Mapping[str, Mapping[str, Sequence[Curve]]],
    *,
    metric: str = "return",
    normalize: Mapping[str, tuple[float, float]] | None = None,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compares groups of runs at the steps that all runs of a task have reached.

    A run counts there with its last evaluation until then, or one up to 5 % later if
    that is nearer. A run whose policy has not been evaluated after any training until
    then is left out, and named. A score of NaN counts as the lowest.

    Args:
      groups: The runs of each group on each task. If all groups have several tasks, the
        last section compares them on these together.
      metric: The name of the score; larger is better.
      normalize: The scores of each task that become 0 and 1, such as an untrained and a
        solved one. None leaves the scores, which then have no mean over tasks.
      notes: Further remarks for readers.

    Raises:
      ValueError: There are no runs, or none with an evaluation of a trained policy, or
        `normalize` lacks a task, or its two scores of one are the same.
    """
    tasks = list(dict.fromkeys(task for runs in groups.values() for task in runs))
    if not tasks:
        raise ValueError("groups: got no runs, expected some; name folders of runs.")
    ranges = dict.fromkeys(tasks, (0.0, 1.0)) if normalize is None else normalize
    if missing := [task for task in tasks if task not in ranges]:
        raise ValueError(
            f"normalize: got no scores of {missing[0]!r} that become 0 and 1, expected "
            "them of each task; add them."
        )
    if same := [task for task in tasks if ranges[task][0] == ranges[task][1]]:
        raise ValueError(
            f"normalize: got {ranges[same[0]][0]:g} twice for {same[0]!r}, expected "
            "two different scores, which become 0 and 1; change one of them."
        )
    told, sections = list(notes), []
    for task in tasks:
        own = {name: runs[task] for name, runs in groups.items() if runs.get(task)}
        rows, remarks = _rows(task, own, *ranges[task])
        told += remarks
        if rows:
            sections.append(_section(task, rows, has_mean=True))
    if not sections:
        raise ValueError(
            f"groups: got no evaluation of a trained policy ({' '.join(told)}), "
            "expected one; wait for it."
        )
    common = [each.rows for each in sections if len(each.rows) == len(groups)]
    if len(common) > 1:
        title, unknown = f"all {len(common)} environments", np.full(1, np.nan)
        rows = []
        for name in groups:
            own_rows = [row for each in common for row in each if row.group == name]
            last = [last for row in own_rows for last in row.last]
            rows.append(Row(name, last, unknown, unknown, unknown))
        sections.append(_section(title, rows, has_mean=normalize is not None))
    elif len(tasks) > 1:
        told.append("No two environments have all groups; each is compared alone.")
    return Comparison(sections, [*told, *_about_numbers(sections)], metric)


def _rows(
    task: str, groups: Mapping[str, Sequence[Curve]], low: float, high: float
) -> tuple[list[Row], list[str]]:
    """Returns the row of each group on a task, and the notes about its runs.

    Args:
      task: The task's name.
      groups: The runs of each group.
      low: The score that becomes 0.
      high: The score that becomes 1.
    """
    curves = [curve for runs in groups.values() for curve in runs]
    trained = [curve for curve in curves if curve.steps[-1] > 0]
    if not trained:
        return [], [f"{task}: left out, since no run has trained before an evaluation."]
    shortest = min(trained, key=lambda curve: curve.steps[-1])
    limit = shortest.steps[-1]
    kept = {
        name: [run for run in runs if run.at(limit)[0] >= 0]
        for name, runs in groups.items()
    }
    rows = [_row(name, runs, limit, low, high) for name, runs in kept.items() if runs]
    notes = []
    if longer := sum(curve.steps[-1] > (1 + _BESIDE) * limit for curve in curves):
        used = ", ".join(f"{row.group} at {_range(row.ends)}" for row in rows)
        notes.append(
            f"{task}: compared at {limit:,.0f} steps, the end of {shortest.name}; "
            f"{longer} of {len(curves)} runs are longer. The evaluations that count "
            f"are of {used} steps."
        )
    if absent := [x.name for x in curves if x.at(limit)[0] < 0]:
        notes.append(
            f"{task}: left out, without an evaluation of a trained policy until "
            f"{limit:,.0f} steps: {', '.join(absent)}."
        )
    counted = [run for runs in kept.values() for run in runs]
    if lost := [x.name for x in counted if np.isnan(x.scores[x.at(limit)[0]])]:
        notes.append(f"{task}: NaN, which counts as the lowest: {', '.join(lost)}.")
    return rows, notes


def _range(steps: np.ndarray) -> str:
    """Returns the least and the greatest of some numbers of steps as text."""
    ends = dict.fromkeys(f"{end:,.0f}" for end in (np.min(steps), np.max(steps)))
    return " to ".join(ends)


def _row(name: str, runs: Sequence[Curve], limit: float, *ends: float) -> Row:
    """Returns the row of a group on a task, at the evaluations of its first run.

    Evaluations of the first run at which another one's policy has not been evaluated
    after any training are left out.
    """
    (low, high), planned = ends, runs[0].steps
    steps = np.append(planned[planned < limit], limit)
    steps = steps[np.all([run.at(steps) >= 0 for run in runs], axis=0)]
    chosen = [(run, run.at(steps)) for run in runs]
    scores = np.stack([run.scores[i] for run, i in chosen])
    scores = np.where(np.isnan(scores), -np.inf, (scores - low) / (high - low))
    seconds = np.median([run.seconds[i] for run, i in chosen], axis=0)
    last = np.array([run.steps[i[-1]] for run, i in chosen])
    return Row(name, [scores], steps, seconds, last)


def _section(title: str, rows: Sequence[Row], *, has_mean: bool) -> Section:
    """Orders the groups, and compares the first one with each other."""
    improvement = statistics.mean_probability_of_improvement

    def rank(row: Row) -> tuple[float, float]:
        each = [improvement(*row.over(other)) for other in rows]
        return -float(np.mean(each)), -float(np.mean(np.concatenate(row.last)))

    first, *others = ordered = sorted(rows, key=rank)
    improvements = {x.group: _improvement(first.over(x)) for x in others}
    return Section(title, ordered, improvements, has_mean)


def _about_numbers(sections: Sequence[Section]) -> list[str]:
    """Returns notes about groups with few runs."""
    seeds = {x["group"]: x["seeds"] for each in sections for x in each.records}
    single = [group for group, number in seeds.items() if number == 1]
    notes = [f"One run, and so no interval: {_listed(single)}."] if single else []
    if any(1 < number < _FEW for number in seeds.values()):
        notes.append(
            f"Intervals of IQMs of fewer than {_FEW} runs are too short: with 5 they "
            "hold the true value in 8 of 10 cases."
        )
    return notes


def _draw_profiles(axes: Axes, section: Section) -> None:
    last = np.concatenate([x for row in section.rows for x in row.last])
    thresholds = statistics.profile_thresholds(last)

    def profile(*scores: np.ndarray) -> np.ndarray:
        pooled = np.concatenate(scores, axis=-2)
        return statistics.performance_profile(pooled, thresholds)

    found = {row.group: _estimate(profile, row.last) for row in section.rows}
    plots.plot_performance_profiles(axes, thresholds, found)
    axes.legend().remove()


def _mean(scores: Sequence[np.ndarray]) -> statistics.Estimate:
    """Returns the interquartile mean of scores of tasks, `[N]`."""
    return _estimate(statistics.pooled_interquartile_mean, scores)


def _improvement(scores: Sequence[np.ndarray]) -> rank_tests.Improvement:
    """Returns a probability of improvement, with NaN beside it for a single run."""
    found = rank_tests.improvement(*scores)
    if min(map(len, scores)) > 1:
        return found
    return dataclasses.replace(found, lower=np.nan, upper=np.nan, p_value=np.nan)


def _estimate(
    statistic: Callable[..., Any], scores: Sequence[np.ndarray]
) -> statistics.Estimate:
    """Returns a statistic with its interval, whose ends are NaN for a single run."""
    num_resamples = 10_000 if scores[0].shape[1] == 1 else 2_000
    found = statistics.stratified_bootstrap(
        statistic, *scores, num_resamples=num_resamples
    )
    unknown = np.full_like(found.value, np.nan)
    is_single = min(map(len, scores)) == 1
    return statistics.Estimate(found.value, unknown, unknown) if is_single else found


def _numbers(name: str, found: statistics.Estimate | None) -> dict[str, float]:
    """Returns an estimate as entries of a record."""
    known = (found.value, found.lower, found.upper) if found else (np.nan,) * 3
    values = [float(np.squeeze(x)) for x in known]
    return dict(zip([name + end for end in _ENDS], values, strict=True))


def _text(record: Mapping[str, Any], name: str, digits: int) -> str:
    """Returns an estimate in a record as text."""
    value, *ends = (_number(record[name + end], f".{digits}f") for end in _ENDS)
    return f"{value} [{', '.join(ends)}]" if all(ends) else value


def _number(value: float, form: str) -> str:
    return "" if np.isnan(value) else f"{value:{form}}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
