"""Rules about values: their errors, targets, discount and what they explain."""

from __future__ import annotations

import numpy as np

from tfrl.reports.evidence import Evidence, ends, late_half
from tfrl.reports.rules import progress
from tfrl.reports.rules.rule import Problem, advice, learning_rates

# An algorithm with one of these settings learns from values of later observations.
_BOOTSTRAPS = ("target_update_tau", "lambda_value")


def values(evidence: Evidence) -> Problem | None:
    """Finds values that diverge, or whose error is larger than the returns."""
    pairs = evidence.column("predicted_return", "realized_return")
    late = late_half(pairs)
    if len(late) < 2:
        return None
    remedy = advice(
        evidence,
        "slower targets (a smaller {target_update_tau})",
        f"a smaller learning rate{learning_rates(evidence)}",
        "{double_q}=True",
        *["double DQN (tfrl.DDQN)"] * (evidence.settings.get("algorithm") == "dqn"),
        "more critics ({num_critics})",
        "a {gamma} below 1",
    )
    gamma, factor = float(evidence.settings.get("gamma", 1.0)), evidence.reward_factor()
    steps = 0.0 if gamma == 1 else 1 / (1 - gamma)
    largest = [
        *np.abs(evidence.values("evaluation_return")),
        abs((evidence.late("reward_size") or 0.0) / factor) * steps,
        1.0,
    ]
    predicted, most = float(np.median(np.abs(late[:, 1]))), 3 * max(largest)
    if predicted > most:
        return Problem(
            "the values diverge: the agent predicts returns that no episode can have",
            "predicted_return",
            predicted,
            most,
            remedy,
        )
    # The entropy bonus of later steps is a part of a soft value, but of no return.
    bonus = abs((evidence.late("alpha") or 0.0) * (evidence.late("entropy") or 0.0))
    size = max(np.abs(pairs[:, 0]).max(), np.ptp(pairs[:, 0]), 1e-6)
    bias = float(np.median(late[:, 1] - late[:, 0]))
    beyond = (abs(bias) - bonus * steps / abs(factor)) / size
    if beyond <= 1.0:
        return None
    how = "overestimates" if bias > 0 else "underestimates"
    return Problem(
        f"the agent {how} its returns by {abs(bias):.3g}, more than their own size",
        "value error / largest return",
        beyond,
        1.0,
        remedy,
    )


def discount(evidence: Evidence) -> Problem | None:
    """Finds a discount of 1 without an end, or one that looks a few steps ahead."""
    gamma = evidence.settings.get("gamma")
    is_bootstrapped = any(name in evidence.settings for name in _BOOTSTRAPS)
    lengths, truncated = _late_episodes(evidence)
    if gamma is None or not is_bootstrapped or len(lengths) < 5:
        return None
    if gamma >= 1 and truncated > 0.5:
        return Problem(
            "the discount is 1 and a time limit cuts most episodes: the values of "
            "observations have no bound",
            "gamma",
            gamma,
            1.0,
            advice(evidence, "a {gamma} of 0.98 to 0.999"),
        )
    steps, typical = 1 / max(1 - gamma, 1e-9), float(np.median(lengths))
    if steps >= 0.05 * typical or progress.evaluation_has_risen(evidence) is not False:
        return None
    return Problem(
        f"rewards more than {steps:.0f} steps ahead hardly count, and episodes have "
        f"{typical:.0f}",
        "1 / (1 - gamma)",
        steps,
        0.05 * typical,
        advice(evidence, "a {gamma} of 0.98 to 0.999"),
    )


def _late_episodes(evidence: Evidence) -> tuple[np.ndarray, float]:
    """Returns the lengths of late episodes, and the share of those that were cut."""
    evaluations = evidence.ended_evaluations()
    lengths, ended = ends(evaluations[len(evaluations) // 2 :])
    return lengths, float(1 - ended.mean()) if len(ended) else 0.0


def targets(evidence: Evidence) -> Problem | None:
    """Finds target networks that do not follow the trained ones."""
    target, trained = (
        late_half(evidence.values(name))
        for name in ("target_weights_change", "weights_change")
    )
    if len(target) < 3 or not trained.any():
        return None
    # Not the medians: targets may be copied less often than there are rows.
    share = float(target.mean() / trained.mean())
    if share >= 1e-3:
        return None
    return Problem(
        "the target networks do not follow the networks that are trained",
        "target_weights_change / weights_change",
        share,
        1e-3,
        advice(
            evidence,
            "target networks that are updated more often",
            "a {target_update_tau} of 0.005 at each update",
            "a smaller {target_update_period}",
        ),
    )


def critic(evidence: Evidence) -> Problem | None:
    """Finds a critic that explains nothing of the returns."""
    explained = evidence.values("explained_variance")
    if len(explained) < 5:
        return None
    # The returns of a solved problem hardly differ, and so there is nothing to explain.
    best = float(np.max(explained))
    mean = float(np.mean(explained[len(explained) // 4 :]))
    if best >= 0.3 or mean >= 0.05:
        return None
    # What can be learned although its returns cannot be foreseen is no fault.
    is_trained = evidence.settings.get("value_loss_weight") != 0
    if is_trained and progress.evaluation_has_risen(evidence):
        return None
    return Problem(
        "the critic explains nothing of the returns",
        "largest explained_variance",
        best,
        0.3,
        advice(
            evidence,
            f"another learning rate{learning_rates(evidence)}",
            "a larger {value_loss_weight}",
            "{normalize_observations}=True",
            "{normalize_rewards}=True",
            "a larger network ({critic_fc_layer_params|fc_layer_params})",
        ),
    )


def advantages(evidence: Evidence) -> Problem | None:
    """Finds advantages of one sign."""
    share = evidence.late("positive_advantages")
    if share is None or 0.03 <= share <= 0.97:
        return None
    return Problem(
        f"nearly all advantages are {'positive' if share > 0.5 else 'negative'}",
        "positive_advantages",
        share,
        0.97 if share > 0.5 else 0.03,
        advice(
            evidence,
            "a critic that learns faster",
            "a larger {value_loss_weight}",
            "{normalize_advantages}=True",
        ),
    )
