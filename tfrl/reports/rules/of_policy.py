"""Rules about the policy: its entropy, its exploration and its steps."""

from __future__ import annotations

import numpy as np

from tfrl.reports.evidence import Evidence, late_half
from tfrl.reports.rules import progress
from tfrl.reports.rules.rule import Problem, advice


def entropy(evidence: Evidence) -> Problem | None:
    """Finds a policy that became deterministic early, or that stays random."""
    if len(evidence.values("entropy")) < 4:
        return None
    if evidence.late("entropy_target") is not None:
        return _below_target(evidence)
    return _outweighed(evidence) or _collapsed(evidence)


def _below_target(evidence: Evidence) -> Problem | None:
    late, target = (evidence.late(name) for name in ("entropy", "entropy_target"))
    if late is None or target is None:
        return None
    least = target - 2 * abs(target) - 1
    if late >= least:
        return None
    return Problem(
        "the policy's entropy stays far below its target: it explores no more",
        "entropy",
        late,
        least,
        advice(
            evidence,
            "a larger {initial_alpha}",
            "a larger {alpha_learning_rate}",
            "rewards of size 1",
        ),
    )


def _outweighed(evidence: Evidence) -> Problem | None:
    """Finds an entropy bonus that is larger than the rewards."""
    weight = evidence.settings.get("entropy_regularization") or 0.0
    values, size = evidence.values("entropy"), evidence.late("reward_size")
    if weight < 0.1 or size is None:
        return None
    late = float(np.median(late_half(values)))
    bonus = weight * abs(late)
    if late < 0.9 * values[0] or bonus < size:
        return None
    return Problem(
        "the bonus for entropy outweighs the rewards, and the policy stays random",
        "entropy_regularization * entropy",
        bonus,
        size,
        advice(evidence, "a smaller {entropy_regularization}", "larger rewards"),
    )


def _collapsed(evidence: Evidence) -> Problem | None:
    pairs = evidence.column("entropy")
    first, late = float(pairs[0, 1]), float(np.median(late_half(pairs[:, 1])))
    is_continuous = len(evidence.values("actions_at_bound")) > 0
    # An entropy that is lower by 4 nats a dimension: a deviation of a fiftieth.
    least = first - 4 * max(1.0, first / 1.42) if is_continuous else 0.02
    collapsed = pairs[pairs[:, 1] < least]
    if not len(collapsed) or collapsed[0, 0] > 0.5 * pairs[-1, 0] or late >= least:
        return None
    if progress.has_risen(evidence) or _improved_after(evidence, collapsed[0, 0]):
        return None
    return Problem(
        f"the policy became deterministic at iteration {int(collapsed[0, 0]):,}, and "
        "has not improved since",
        "entropy",
        float(collapsed[0, 1]),
        least,
        advice(
            evidence,
            "a smaller learning rate",
            "a larger {entropy_regularization}",
            "a smaller {num_epochs}",
        ),
    )


def _improved_after(evidence: Evidence, iteration: float) -> bool:
    returns = evidence.column("evaluation_return")
    after = returns[returns[:, 0] >= iteration, 1]
    if not len(after):
        return False
    return bool(after.max() > after[0] + 0.2 * (abs(after[0]) + np.ptp(after)))


def exploration(evidence: Evidence) -> Problem | None:
    """Finds collection without exploring, or a run that ends with random actions."""
    epsilon = evidence.values("epsilon")
    settings = evidence.settings
    noise = [
        float(settings[name])
        for name in ("exploration_noise", "ou_stddev", "sigma")
        if name in settings
    ]
    first_steps = int(settings.get("initial_collect_steps", 0))
    is_greedy = len(epsilon) >= 4 and epsilon.max() < 1e-3
    is_silent = bool(noise) and max(noise) < 1e-3 and not len(evidence.values("alpha"))
    is_noisy_network = float(settings.get("noisy_stddev", 0.0)) > 0
    has_begun_random = first_steps > 100 * int(settings.get("batch_size", 1))
    if (is_greedy or is_silent) and not (is_noisy_network or has_begun_random):
        return Problem(
            "the agent collects without exploring: it takes its greedy actions",
            "epsilon" if is_greedy else "exploration noise",
            float(epsilon.max()) if is_greedy else max(noise),
            1e-3,
            advice(
                evidence,
                "random actions at first",
                "an {initial_epsilon} of 1 and a {final_epsilon} of 0.05",
                "a {exploration_noise|ou_stddev|sigma} of 0.1 or more",
                "more {initial_collect_steps}",
            ),
        )
    if len(epsilon) >= 4 and epsilon[-1] > 0.5 and evidence.done() > 0.9:
        return Problem(
            "the agent still takes mostly random actions at the end of the run",
            "epsilon",
            float(epsilon[-1]),
            0.5,
            advice(evidence, "a longer run", "fewer {epsilon_decay_iterations}"),
        )
    return None


def steps(evidence: Evidence) -> Problem | None:
    """Finds updates that move the policy too far, or not at all."""
    clipped, kl = evidence.late("clip_fraction"), evidence.late("approx_kl")
    if kl is None or clipped is None:
        return None
    for name, value, most in (("clip_fraction", clipped, 0.5), ("approx_kl", kl, 0.1)):
        if value > most:
            return Problem(
                "each update moves the policy too far",
                name,
                value,
                most,
                advice(
                    evidence,
                    "a smaller learning rate",
                    "a smaller {num_epochs}",
                    "a {target_kl} of 0.02",
                ),
            )
    largest = float(np.max(evidence.values("approx_kl")))
    if largest >= 1e-5 or clipped != 0:
        return None
    return Problem(
        "the updates do not move the policy",
        "approx_kl",
        largest,
        1e-5,
        advice(
            evidence,
            "a larger learning rate",
            "a larger {num_epochs}",
            "a {clip_range} of 0.2",
        ),
    )
