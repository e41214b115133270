"""Whether a run has learned anything: whether a return rose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrl.reports.evidence import Evidence
from tfrl.reports.rules.rule import Problem, advice

# Standard errors by which the return has to be above that of the untrained policy.
_ERRORS = 2.5


def untrained(evidence: Evidence) -> Mapping[str, Any] | None:
    """Returns the row with the evaluation of the untrained policy, or None."""
    rows = [row for row in evidence.rows if row.get("iteration") == 0]
    evaluated = [row for row in rows if row.get("evaluation_returns")]
    return evaluated[0] if evaluated else None


def trained(evidence: Evidence) -> list[dict[str, Any]]:
    """Returns the rows with evaluations of trained policies."""
    return [
        dict(row)
        for row in evidence.rows
        if row.get("iteration") and row.get("evaluation_returns")
    ]


def has_risen(evidence: Evidence) -> bool | None:
    """Whether any return rose, evaluated or while collecting; None if unknown."""
    found = [evaluation_has_risen(evidence), _collected_has_risen(evidence)]
    if True in found:
        return True
    return False if False in found else None


def never_rose(evidence: Evidence) -> bool:
    """Whether it is known that no return rose."""
    return has_risen(evidence) is False


def evaluation_has_risen(evidence: Evidence) -> bool | None:
    """Whether evaluations were better than that of the untrained policy.

    The mean of the two best must be better by more than the chance of their episodes
    explains, or reach the return that solves the environment.
    """
    found = _rise(evidence)
    return None if found is None else found[0] > found[1]


def _rise(evidence: Evidence) -> tuple[float, float] | None:
    """Returns how much the return rose, and by how much it rises by chance."""
    first, later = untrained(evidence), trained(evidence)
    if first is None or not later:
        return None
    best = sorted(later, key=lambda row: -np.mean(_returns(row)))[:2]
    mean = float(np.mean([_returns(row) for row in best]))
    rise = mean - float(np.mean(_returns(first)))
    threshold = evidence.facts().get("reward_threshold")
    if threshold is not None and mean >= threshold:
        return rise, -np.inf
    errors = [_squared_error(_returns(row)) for row in (first, *best)]
    squared = errors[0] + np.mean(errors[1:]) / len(best)
    return rise, float(_ERRORS * squared**0.5) + 1e-6


def _collected_has_risen(evidence: Evidence) -> bool | None:
    """Whether the returns of collection were better at the end than at first."""
    returns = evidence.values("average_return")
    third = len(returns) // 3
    if third < 2:
        return None
    first, last = returns[:third], returns[-third:]
    # A lucky episode stays in the mean of ten for many rows.
    luck = 0.05 * max(abs(first.mean()), abs(last.mean()))
    by_chance = 2 * (first.std() + last.std()) + luck + 1e-6
    return bool(last.mean() - first.mean() > by_chance)


def find(evidence: Evidence) -> Problem | None:
    """Finds a return that never rose above the untrained policy's."""
    later, found = trained(evidence), _rise(evidence)
    if found is None or len(later) < 3 or evidence.done() < 0.9:
        return None
    rise, by_chance = found
    if has_risen(evidence) is not False or (rise == 0 and _all_ended(later)):
        return None  # The untrained policy may be as good as any.
    return Problem(
        "the return never rose above the untrained policy's by more than chance "
        "explains",
        "best return, less the untrained policy's",
        rise,
        by_chance,
        advice(
            evidence,
            "the other findings, if there are any; without them one of: a longer run",
            "a smaller or larger {learning_rate|critic_learning_rate}",
            "more exploration",
            "rewards on the way to the goal",
        ),
    )


def _all_ended(rows: list[dict[str, Any]]) -> bool:
    return all(all(row.get("evaluation_terminated", [False])) for row in rows)


def _returns(row: Any) -> np.ndarray:
    return np.array(row["evaluation_returns"], np.float64)


def _squared_error(returns: np.ndarray) -> float:
    """Returns the squared standard error of the mean."""
    return float(np.var(returns)) / max(len(returns) - 1, 1)
