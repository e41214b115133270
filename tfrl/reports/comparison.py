"""Compares groups of runs by their learning curves: a table, a figure and a sentence.

After R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021); the numbers come from `comparison_table`, the figure from `plots`.

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
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrl.eval import statistics
from tfrl.reports import plots
from tfrl.reports.comparison_table import (
    BESIDE,
    ENDS,
    Curve,
    Row,
    Section,
    row_of,
    section_of,
)
from tfrl.system import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW = 10  # Runs; the bootstrap intervals of fewer are too short.
_LEVEL = 0.05  # The chance of equal groups to differ.
_MANY = 1_000  # Seeds; a larger number is not worth its digits.


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
            return _sentence(last)
        return " ".join(f"{each.title}: {_sentence(each)}" for each in self.sections)

    def __str__(self) -> str:
        parts = [
            f"{x.title}, {self.metric}:\n\n{_table(x.records)}" for x in self.sections
        ]
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
        """Draws the figure of `compare.png`; see `plots.draw`."""
        return plots.draw(self.sections, self.metric)


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
            sections.append(section_of(task, rows, has_mean=True))
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
        sections.append(section_of(title, rows, has_mean=normalize is not None))
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
    rows = [row_of(name, runs, limit, low, high) for name, runs in kept.items() if runs]
    notes = []
    if longer := sum(curve.steps[-1] > (1 + BESIDE) * limit for curve in curves):
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


def _sentence(section: Section) -> str:
    """Returns which group is ahead, or how many more runs would show it."""
    first, *others = section.records
    num_tasks = len(section.rows[0].scores)
    if not others:
        return f"{first['group']} is the only group, so nothing is compared."
    if any(record["seeds"] == 1 for record in section.records):
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


def _table(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns a Markdown table, whose columns are aligned in a terminal, too."""
    known = [x["iqm"] for x in records if np.isfinite(x["iqm"])]
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
        cells = [form(record) for record in records]
        width = max(map(len, [name, *cells]))
        if any(cells):
            columns.append([f"{x:{width}}" for x in (name, "-" * width, *cells)])
    lines = zip(*columns, strict=True)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(record: Mapping[str, Any], name: str, digits: int) -> str:
    """Returns an estimate in a record as text."""
    value, *ends = (_number(record[name + end], f".{digits}f") for end in ENDS)
    return f"{value} [{', '.join(ends)}]" if all(ends) else value


def _number(value: float, form: str) -> str:
    return "" if np.isnan(value) else f"{value:{form}}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
