"""Compares agents of the score table in pairs: a section of its page, and pictures."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tfrl.eval import rank_tests, statistics
from tfrl.reports import plots

# Pairs of agents, by their names in the score table. Each group has one picture of its
# agents' profiles.
GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Discrete actions": (
        ("Double DQN", "Discrete SAC"),
        ("QR-DQN", "Double DQN"),
        ("QR-DQN", "DQN"),
        ("C51", "DQN as C51"),
        ("C51", "PQN"),
        (
            "Prioritized double DQN",
            "Double DQN at the rate of prioritized double DQN",
        ),
        ("Rainbow", "IQN"),
    ),
    "Continuous actions": (
        ("SAC", "DDPG"),
        ("SAC", "TD3"),
        ("TD3", "DDPG"),
        ("DMPO", "MPO"),
    ),
    "Learning from recordings": (
        ("IQL", "BC"),
        ("TD3+BC", "BC"),
        ("CQL", "BC"),
        ("CQL", "IQL"),
        ("CQL", "TD3+BC"),
    ),
}
_TEXT = """## Pairs

The probability that a run of X has a higher return than a run of Y (the probability of
improvement of Agarwal et al.), on each environment that both learned in the same number
of steps, give or take 5 %, and in more than one run. Equal returns count one half, so
0.5 is no difference. The 95 % interval is a score interval, and p that of a permutation
test; both hold their level for few runs
([comparing](comparing.md#compare) names them). The first picture shows each pair's
probability, or the mean if there are several environments.

Only the order of returns counts here, not how far apart they are. The profiles show
that: the fraction of an agent's runs whose return is above a number, with bootstrap
intervals of 95 %, which are too short for few runs.
[Evaluation](evaluation.md#compare-two-agents) has the functions, and `GROUPS` in
`benchmarks/score_pairs.py` has the pairs.
"""
_COLUMNS = ("X", "Y", "environment", "steps", "runs", "P(X > Y) (95 % interval)", "p")


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """The runs of one configuration.

    Attributes:
      agent: The agent's name in the score table.
      environment: The environment.
      steps: The median of the runs' numbers of steps.
      returns: The return of each run, `[num_runs, 1]`.
    """

    agent: str
    environment: str
    steps: float
    returns: np.ndarray

    def is_like(self, other: Result) -> bool:
        """Returns whether both are on one environment, with as many steps."""
        ratio = self.steps / other.steps
        return self.environment == other.environment and 0.95 <= ratio <= 1 / 0.95


def results(rows: Iterable[Mapping[str, str]]) -> list[Result]:
    """Returns a result for each configuration of the score table with several runs.

    The order of two single runs would count as certain.
    """
    runs: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        key = row["agent"], row["environment"], row["preset"], row["config_hash"]
        runs.setdefault(key, []).append(row)
    return [
        Result(
            agent,
            environment,
            float(np.median([float(row["steps"]) for row in own])),
            np.array([[float(row["return"])] for row in own]),
        )
        for (agent, environment, *_), own in runs.items()
        if len(own) > 1
    ]


def matches(
    found: Sequence[Result], x: str, y: str
) -> tuple[tuple[Result, Result], ...]:
    """Returns the results of agents `x` and `y` that can be compared, in pairs."""
    return tuple(
        (first, second)
        for first in found
        for second in found
        if (first.agent, second.agent) == (x, y) and first.is_like(second)
    )


def improvement(pairs: Sequence[tuple[Result, Result]]) -> rank_tests.Improvement:
    """Returns the probability of improvement, the mean over the pairs of results."""
    return rank_tests.improvement(*(each.returns for pair in pairs for each in pair))


def line(pairs: Sequence[tuple[Result, Result]]) -> str:
    """Returns a line of the table: one environment, or the mean over several."""
    x, y = pairs[0]
    if len(pairs) == 1:
        runs = f"{len(x.returns)} and {len(y.returns)}"
        where = f"{x.environment} | {x.steps:,.0f} | {runs}"
    else:
        where = f"mean of these {len(pairs)} | |"
    found = improvement(pairs)
    interval = f"({found.lower:.2f}, {found.upper:.2f})"
    cells = f"{found.value:.2f} {interval} | {found.p_value:.2g}"
    return f"| {x.agent} | {y.agent} | {where} | {cells} |"


def section(rows: Iterable[Mapping[str, str]], docs: pathlib.Path) -> list[str]:
    """Draws the pictures into `docs`, and returns the lines of the section.

    Args:
      rows: The rows of the score table. A pair without comparable rows is left out.
      docs: The folder of the page.

    Returns:
      The lines; none if no pair is left.
    """
    found = results(rows)
    lines: list[str] = []
    improvements: dict[str, rank_tests.Improvement] = {}
    pictures = []
    for group, names in GROUPS.items():
        compared: list[tuple[Result, Result]] = []
        for x, y in names:
            pairs = matches(found, x, y)
            if not pairs:
                continue
            lines += [line([pair]) for pair in pairs]
            if len(pairs) > 1:
                lines.append(line(pairs))
            improvements[f"{x} over {y}"] = improvement(pairs)
            compared += pairs
        if compared:
            name = f"profiles_{group.lower().replace(' ', '_')}.png"
            plot_profiles(compared, docs / "scores" / name)
            pictures.append(f"![{group}](scores/{name})")
    if not lines:
        return []
    plot_improvements(improvements, docs / "scores" / "improvements.png")
    pictures.insert(0, "![Probabilities of improvement](scores/improvements.png)")
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return [_TEXT, *head, *lines, "", *pictures, ""]


def plot_profiles(pairs: Sequence[tuple[Result, Result]], path: pathlib.Path) -> None:
    """Draws a panel with two profiles for each pair of results."""
    from matplotlib import figure

    columns = min(2, len(pairs))
    rows = -(-len(pairs) // columns)
    picture = figure.Figure(figsize=(4.5 * columns, 3.2 * rows), layout="constrained")
    for place, pair in enumerate(pairs, start=1):
        thresholds = statistics.profile_thresholds(
            np.concatenate([result.returns for result in pair])
        )
        profile = functools.partial(
            statistics.performance_profile, thresholds=thresholds
        )
        profiles = {
            result.agent: statistics.stratified_bootstrap(profile, result.returns)
            for result in pair
        }
        axes = picture.add_subplot(rows, columns, place)
        plots.plot_performance_profiles(axes, thresholds, profiles)
        axes.set(title=pair[0].environment, xlabel="return")
    path.parent.mkdir(exist_ok=True)
    picture.savefig(path, dpi=100)


def plot_improvements(
    improvements: Mapping[str, statistics.Estimate], path: pathlib.Path
) -> None:
    """Draws the probabilities of improvement of all pairs."""
    from matplotlib import figure

    size = (6, 0.9 + 0.32 * len(improvements))
    picture = figure.Figure(figsize=size, layout="constrained")
    plots.plot_probability_of_improvement(picture.subplots(), improvements)
    picture.savefig(path, dpi=100)
