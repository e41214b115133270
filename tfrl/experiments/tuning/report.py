"""The report of a tuning, a page of Markdown."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl.experiments.tuning import search

if TYPE_CHECKING:
    import optuna

_MOST = 20  # Trials in the table.


def text(
    study: optuna.Study,
    row: Mapping[str, Any],
    searched: Mapping[str, Any],
    returns: Mapping[int, Mapping[int, float]],
) -> str:
    """Returns the report.

    Args:
      study: Optuna's study.
      row: The best settings, as the fields of a `presets.Preset`.
      searched: The range of each field.
      returns: The last mean return with other seeds, by trial and seed.
    """
    trials = study.get_trials(deepcopy=False)
    states = [trial.state.name.lower() for trial in trials]
    counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
    importance = _importance(study)
    fields = [
        (name, search.text(each), importance.get(name, ""))
        for name, each in searched.items()
    ]
    ended = [trial for trial in trials if trial.state.name == "COMPLETE"]
    best = []
    for trial in sorted(ended, key=lambda trial: -trial.value)[:_MOST]:
        others = list(returns.get(trial.number, {}).values())
        mean = statistics.mean(others) if others else ""
        drawn = [trial.params[name] for name in searched]
        best.append((trial.number, trial.value, mean, *drawn))
    return "\n".join(
        [
            f"# {row['algorithm']} on {row['environment']}\n",
            f"{row['source'].capitalize()}. {len(trials)} trials: {counts}.\n",
            *_table(("field", "range", "importance"), fields),
            "\nThe best trials, with their mean return over other seeds:\n",
            *_table(("trial", "return", "other seeds", *searched), best),
            "",
        ]
    )


def _importance(study: optuna.Study) -> dict[str, float]:
    """Returns Optuna's importance of each field; none if it cannot say."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found: dict[str, float] = optuna.importance.get_param_importances(study)
            return found
        except (ValueError, RuntimeError):  # Too few trials.
            return {}


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    short = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in rows
    ]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *short)]
