"""The report of a tuning, a page of Markdown."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl.algorithms.tuning import search

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
      row: The best settings, as a row of `presets`.
      searched: The range of each field.
      returns: The last mean return with other seeds, by trial and seed.
    """
    trials = study.get_trials(deepcopy=False)
    states = [trial.state.name.lower() for trial in trials]
    counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
    ended = [trial for trial in trials if trial.state.name == "COMPLETE"]
    ended = sorted(ended, key=lambda trial: -trial.value)
    importance = _importance(study)
    fields = [
        (name, search.text(each), f"{importance[name]:.2f}" if importance else "")
        for name, each in searched.items()
    ]
    again = [
        (
            number,
            f"{study.trials[number].value:.1f}",
            f"{statistics.mean(own.values()):.1f}",
            " ".join(f"{value:.1f}" for value in own.values()),
        )
        for number, own in returns.items()
    ]
    best = [
        (
            trial.number,
            f"{trial.value:.1f}",
            *(_short(trial.params[n]) for n in searched),
        )
        for trial in ended[:_MOST]
    ]
    lines = [
        f"# {row['algorithm']} on {row['environment']}",
        "",
        f"{row['source'].capitalize()}. {len(trials)} trials: {counts}.",
        "",
        *_table(("field", "range", "importance"), fields),
        "",
    ]
    if again:
        lines += [
            "The settings of the best trials, trained again with other seeds:",
            "",
            *_table(("trial", "its return", "mean", "returns"), again),
            "",
        ]
    lines += [f"The best {len(best)} trials:", ""]
    lines += [*_table(("trial", "return", *searched), best), ""]
    return "\n".join(lines)


def _importance(study: optuna.Study) -> dict[str, float]:
    """Returns Optuna's importance of each field; none if it cannot say."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return optuna.importance.get_param_importances(study)
        except (ValueError, RuntimeError):  # Too few trials.
            return {}


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]
