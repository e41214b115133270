"""Rules that compare the evaluated policy with the others of its run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.reports.evidence import Evidence, late_half
from tfrl.reports.rules import progress
from tfrl.reports.rules.rule import Problem, advice


def find(evidence: Evidence) -> Problem | None:
    """Finds an evaluated policy that is worse than the collecting one, or was lost."""
    return _other_environment(evidence) or _far_behind(evidence) or _lost(evidence)


def _other_environment(evidence: Evidence) -> Problem | None:
    """Finds another environment for evaluation that explains the returns there."""
    differs: Any = evidence.facts().get("evaluation_differs")
    if not differs:
        return None
    behind = _behind(evidence)
    has_failed = progress.evaluation_has_risen(evidence) is False
    if not has_failed and (behind is None or behind <= 0.5):
        return None
    return Problem(
        "the environment for evaluation is another one: the same actions from the same "
        f"seed give other {' and '.join(differs)} there",
        "what differs in evaluation_environment",
        float(len(differs)),
        0.0,
        "the same wrappers for both environments.",
    )


def _far_behind(evidence: Evidence) -> Problem | None:
    behind, facts = _behind(evidence), evidence.facts()
    if behind is None or behind <= 0.5:
        return None
    is_same = bool(facts) and not facts.get("evaluation_differs")
    # Greedy actions of values that are not learned yet go round in circles.
    if is_same and len(evidence.values("epsilon")):
        return None
    return Problem(
        "the evaluated policy is far worse than the collect policy",
        "difference / range of returns",
        behind,
        0.5,
        "an evaluation with greedy=False, since the environments are the same."
        if is_same
        else "one of: the environments or their wrappers differ; greedy actions are "
        "worse than those that explore (evaluate with greedy=False).",
    )


def _behind(evidence: Evidence) -> float | None:
    """Returns how far evaluated returns are below the collected, of their range."""
    late = late_half(evidence.column("evaluation_return", "average_return"))
    spread = _spread(evidence)
    if len(late) < 2 or spread == 0:
        return None
    return float(np.median(late[:, 0] - late[:, 1])) / spread


def _spread(evidence: Evidence) -> float:
    """Returns the range of the returns, evaluated or collected."""
    collected = evidence.values("average_return")
    return max(
        evidence.return_range(), float(np.ptp(collected)) if len(collected) else 0.0
    )


def _lost(evidence: Evidence) -> Problem | None:
    returns, spread = evidence.values("evaluation_return"), _spread(evidence)
    if len(returns) < 7 or spread == 0:
        return None
    *before, last = returns
    lost = float(np.median(before[-max(3, len(before) // 4) :]) - last) / spread
    if lost <= 0.4:
        return None
    return Problem(
        "the last policy is far worse than the policies before it",
        "difference / range of returns",
        lost,
        0.4,
        advice(
            evidence,
            "the best policy, which a run keeps in addition to its last one",
            "a learning rate that falls to 0 ({final_learning_rate}=0)",
        ),
    )
