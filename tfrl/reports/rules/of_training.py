"""Rules about the updates: learning rates, gradients, hidden units and replay."""

from __future__ import annotations

import numpy as np

from tfrl.reports.evidence import Evidence, late_half
from tfrl.reports.rules import progress
from tfrl.reports.rules.rule import Problem, advice, learning_rates

# Adam moves each weight by about the learning rate in an update.
_LARGEST, _LARGE, _SMALL = 0.1, 0.02, 1e-7
# The rates of temperatures may have any size.
_OF_NETWORKS = (
    "learning_rate",
    "actor_learning_rate",
    "critic_learning_rate",
    "policy_learning_rate",
)


def learning_rate(evidence: Evidence) -> Problem | None:
    """Finds a learning rate with which nothing can be learned."""
    updates = evidence.values("train_steps")
    if not len(updates) or updates[-1] < 100:
        return None
    most = _LARGE if progress.never_rose(evidence) else _LARGEST
    for name in _OF_NETWORKS:
        rate = evidence.settings.get(name)
        if not isinstance(rate, int | float):
            continue
        if rate >= most:
            return Problem(
                f"{name}={rate:g} is so large that each update overwrites the weights",
                name,
                float(rate),
                most,
                advice(evidence, f"a {{{name}}} of 1e-4 to 1e-3"),
            )
        if rate <= _SMALL:
            return Problem(
                f"{name}={rate:g} is so small that the weights hardly move",
                name,
                float(rate),
                _SMALL,
                advice(evidence, f"a {{{name}}} of 1e-4 to 1e-3"),
            )
    return None


def gradients(evidence: Evidence) -> Problem | None:
    """Finds gradients that vanish, or that are clipped to almost nothing."""
    norm, weights = evidence.late("gradient_norm"), evidence.late("weights_norm")
    error = evidence.late("td_error")
    if norm is None or weights is None:
        return None
    least = 1e-7 * weights
    if norm < least and (error is None or error > 1e-6):
        return Problem(
            "the gradients vanish although there are errors to learn from",
            "gradient_norm",
            norm,
            least,
            "look for a loss that does not reach the weights: stopped gradients, dead "
            "or saturated units, rewards near 0.",
        )
    limit = evidence.settings.get("max_gradient_norm")
    if not limit:
        return None
    share = float(np.mean(late_half(evidence.values("gradient_norm")) > limit))
    if share > 0.9 and norm > 1e4 * limit:
        return Problem(
            "nearly every gradient is clipped, to less than a ten-thousandth",
            "gradient_norm / limit",
            norm / limit,
            1e4,
            advice(evidence, "a {max_gradient_norm} of 0.5 to 10", "rewards of size 1"),
        )
    return None


def units(evidence: Evidence) -> Problem | None:
    """Finds hidden units whose output is almost always 0."""
    for name, where, most in (
        ("dormant_units", "hidden units", 0.6),
        ("dormant_layer", "units of a hidden layer", 0.95),
    ):
        share = evidence.late(name)
        if share is not None and share > most:
            return Problem(
                f"{share:.0%} of the {where} hardly ever differ from 0",
                name,
                share,
                most,
                advice(
                    evidence,
                    f"a smaller learning rate{learning_rates(evidence)}",
                    "scaled observations",
                    "another {activation}, such as tanh",
                ),
            )
    return None


def replay(evidence: Evidence) -> Problem | None:
    """Finds a buffer that is too small, or frames that are drawn too often."""
    batch = evidence.settings.get("batch_size")
    size = evidence.late("replay_size")
    is_queue = "max_queue_size" in evidence.settings  # Of rollouts, each used once.
    if not batch or size is None or is_queue:
        return None
    if size < 10 * batch:
        return Problem(
            f"the replay buffer holds {int(size):,} frames for batches of {batch}",
            "replay_size",
            size,
            10.0 * batch,
            advice(
                evidence,
                "a larger replay buffer ({replay_capacity})",
                "more {initial_collect_steps}",
                "a smaller {batch_size}",
            ),
        )
    steps = evidence.last("environment_steps")
    if not steps:
        return None
    drawn = evidence.last("train_steps") * batch / steps
    if drawn <= 2e4:
        return None
    return Problem(
        f"each frame is drawn {drawn:,.0f} times",
        "updates * batch_size / steps",
        drawn,
        2e4,
        advice(evidence, "fewer updates ({train_steps_per_iteration})"),
    )
