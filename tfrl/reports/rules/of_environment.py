"""Rules about the environment: observations, actions, rewards and ends of episodes."""

from __future__ import annotations

import numpy as np

from tfrl.reports.evidence import Evidence, ends, late_half
from tfrl.reports.rules import progress
from tfrl.reports.rules.rule import Problem, advice


def observations(evidence: Evidence) -> Problem | None:
    """Finds observations that do not change, are noise, or are not scaled."""
    return _frozen_observation(evidence) or _noise(evidence) or _unscaled(evidence)


def _frozen_observation(evidence: Evidence) -> Problem | None:
    if evidence.facts().get("observation_changes") is not False:
        return None
    if not progress.never_rose(evidence):
        return None
    return Problem(
        "the observation stays the same within an episode",
        "observations that differ from the one before",
        0.0,
        1.0,
        "what the environment's step returns; a wrapper may return the first "
        "observation, or the same array each time.",
        is_cause_of_all=True,
    )


def _noise(evidence: Evidence) -> Problem | None:
    facts = evidence.facts()
    correlation = facts.get("observation_correlation")
    if correlation is None or correlation >= 0.4:
        return None
    follows = facts.get("observation_follows_actions", False)
    if follows or not progress.never_rose(evidence):
        return None
    return Problem(
        "the observations are noise: they follow neither from the observation before "
        "nor from the action",
        "correlation of successive observations",
        correlation,
        0.4,
        "what the environment's step returns as the observation.",
        is_cause_of_all=True,
    )


def _unscaled(evidence: Evidence) -> Problem | None:
    size = evidence.late("observation_size")
    if size is None or evidence.settings.get("normalize_observations"):
        return None
    if 1e-3 <= size <= 100:
        return None
    return Problem(
        "the observations are not of size 1",
        "observation_size",
        size,
        100.0 if size > 100 else 1e-3,
        advice(
            evidence,
            "{normalize_observations}=True",
            "a wrapper that scales each element of the observation",
        ),
    )


def actions(evidence: Evidence) -> Problem | None:
    """Finds actions without effect, or stuck in a part of their range."""
    return (
        _ignored(evidence)
        or _own_bounds(evidence)
        or _dead_actions(evidence)
        or _at_bound(evidence)
        or _narrow(evidence)
    )


def _ignored(evidence: Evidence) -> Problem | None:
    if evidence.facts().get("actions_matter") is not False:
        return None
    return Problem(
        "neither the observations nor the rewards nor the ends of episodes depend on "
        "the actions",
        "effect of the actions",
        0.0,
        1.0,
        "what the environment's step does with its action; a wrapper may replace it.",
        is_cause_of_all=True,
    )


def _own_bounds(evidence: Evidence) -> Problem | None:
    share = evidence.facts().get("own_bounds_reached")
    if share is None or share >= 0.6:
        return None
    return Problem(
        f"the actions reach {share:.0%} of the bounds of the innermost environment",
        "own_bounds_reached",
        share,
        0.6,
        "the bounds that the wrappers of the environment declare; RescaleAction of "
        "Gymnasium changes the actions together with their bounds.",
    )


def _dead_actions(evidence: Evidence) -> Problem | None:
    dead = evidence.facts().get("dead_actions")
    if not dead:
        return None
    return Problem(
        f"a part of the actions' range has no effect: all actions in the "
        f"{' and the '.join(dead)} quarter between the bounds do the same",
        "share of the range",
        0.25 * len(dead),
        0.0,
        "one of: wrappers that clip the action; bounds that are wider than those the "
        "environment means; a dead zone that is meant.",
    )


def _at_bound(evidence: Evidence) -> Problem | None:
    share = evidence.late("actions_at_bound")
    if share is None or share <= 0.95:
        return None
    return Problem(
        "a dimension's actions nearly all lie at one of its bounds",
        "actions_at_bound",
        share,
        0.95,
        advice(
            evidence,
            "a smaller {actor_learning_rate|policy_learning_rate|learning_rate}",
            "a larger {exploration_noise|ou_stddev|sigma|initial_alpha}",
            "rewards of size 1",
        ),
    )


def _narrow(evidence: Evidence) -> Problem | None:
    """Finds a policy whose actions stay in a part of the range between the bounds."""
    late = late_half(evidence.values("actions_reach"))
    reach = evidence.late("actions_reach")
    if reach is None or reach <= 0.02:
        return None
    # A policy that is squashed to a part of the range spans the same part each time.
    is_squashed = reach < 0.6 and np.ptp(late) < 0.02 * reach
    if not is_squashed and (reach >= 0.3 or not progress.never_rose(evidence)):
        return None
    what = "always the same " if is_squashed else ""
    return Problem(
        f"the policy's actions span {what}{reach:.0%} of the range between their "
        "bounds",
        "actions_reach",
        reach,
        0.6 if is_squashed else 0.3,
        "an actor network whose outputs reach the bounds."
        if is_squashed
        else "one of: an actor network whose outputs do not reach the bounds; "
        "observations that hardly differ; a policy that has not begun to learn.",
    )


def rewards(evidence: Evidence) -> Problem | None:
    """Finds rewards that are 0, constant, of a wrong sign or of a wrong size."""
    return (
        _flipped(evidence)
        or _tiny_or_huge(evidence)
        or _atoms(evidence)
        or _constant(evidence)
        or _wrong_sign(evidence)
    )


def _flipped(evidence: Evidence) -> Problem | None:
    factor = evidence.reward_factor()
    if factor >= 0:
        return None
    return Problem(
        "the losses take the rewards with the opposite sign, so that the agent learns "
        "to get the least return",
        "reward_scale_factor",
        factor,
        0.0,
        "a reward_scale_factor above 0 in agent_arguments.",
        is_cause_of_all=True,
    )


def _tiny_or_huge(evidence: Evidence) -> Problem | None:
    sizes = evidence.values("reward_size")
    if len(sizes) < 4:
        return None
    # The errors of returns are larger than the errors of rewards.
    size = float(np.max(sizes))
    if size < 1e-3:
        text = "no reward was seen" if size == 0 else "the rewards are very small"
        return Problem(
            f"{text}, so that the loss has nothing to learn from",
            "reward_size",
            size,
            1e-3,
            advice(
                evidence,
                "larger rewards",
                "{normalize_rewards}=True",
                "more exploration if rewards are rare",
            ),
            is_cause_of_all=True,
        )
    late = evidence.late("reward_size") or 0.0
    if late <= 1e3:
        return None
    return Problem(
        "the rewards are so large that the loss sees only their sign",
        "reward_size",
        late,
        1e3,
        advice(evidence, "rewards of size 1", "{normalize_rewards}=True"),
    )


def _constant(evidence: Evidence) -> Problem | None:
    """Finds episodes that all have the same return, and end by a time limit."""
    rows = [row for row in evidence.rows if row.get("evaluation_returns")]
    returns = np.array([x for row in rows for x in row["evaluation_returns"]])
    ended = [x for row in rows for x in row.get("evaluation_terminated", [True])]
    collected = evidence.values("average_return")
    if len(rows) < 3 or all(ended):
        return None
    everything = np.concatenate([returns, collected])
    if np.ptp(everything) > 1e-4 * max(np.abs(everything).max(), 1.0):
        return None
    return Problem(
        f"every episode has the same return, {returns[0]:.4g}",
        "range of the returns",
        float(np.ptp(everything)),
        0.0,
        "one of: the reward is the same at each step whatever the agent does; there is "
        "a goal that no episode has reached, which takes more exploration or rewards "
        "on the way.",
        is_cause_of_all=True,
    )


def _wrong_sign(evidence: Evidence) -> Problem | None:
    """Finds rewards that cannot add up to the return that solves the environment."""
    facts = evidence.facts()
    threshold, span = facts.get("reward_threshold"), facts.get("reward_range")
    returns = evidence.values("evaluation_return")
    if not threshold or span is None or not len(returns):
        return None
    sign = np.sign(threshold)
    seen = sign * np.array([*span, *returns, *evidence.values("average_return")])
    if seen.max() >= 0:
        return None
    return Problem(
        f"all rewards and returns are {'negative' if sign > 0 else 'positive'}, and "
        f"yet a return of {threshold:g} solves the environment",
        "greatest return" if sign > 0 else "least return",
        float(sign * seen.max()),
        float(threshold),
        "one of: the rewards have the opposite sign; there is a goal that no episode "
        "has reached.",
    )


def _atoms(evidence: Evidence) -> Problem | None:
    if not evidence.settings.get("value_bins", True):
        return None  # Its critics predict numbers, whatever vmin and vmax are.
    low, high = evidence.settings.get("vmin"), evidence.settings.get("vmax")
    came = evidence.late("realized_return", least=1)
    if low is None or high is None or came is None:
        return None
    came *= evidence.reward_factor()
    outside = max(came - high, low - came) / max(high - low, 1e-6)
    if outside <= 0.25:
        return None
    end = "{vmin}" if came < low else "{vmax}"
    return Problem(
        f"returns of {came:.3g} lie outside of the range of the critics' atoms or bins",
        "distance / range",
        outside,
        0.25,
        advice(evidence, f"another {end}: a range that holds the discounted returns"),
    )


def clock(evidence: Evidence) -> Problem | None:
    """Finds episodes that end at one step, with a termination."""
    evaluations = evidence.ended_evaluations()
    lengths, ended = ends(evaluations)
    if len(lengths) < 10:
        return None
    longest = lengths == lengths.max()
    number, share = int(longest.sum()), float(longest.mean())
    step = int(lengths.max())
    # All episodes of one policy may fail at the same step.
    is_of_one_policy = sum(step in row["evaluation_lengths"] for row in evaluations) < 2
    if number < 5 or is_of_one_policy or not ended[longest].all():
        return None
    if step >= 20 and share >= 0.2:
        return Problem(
            f"{number} episodes end at step {step:,}, the longest, with the discount "
            "0: a time limit that counts as a termination",
            "share of such episodes",
            share,
            0.2,
            "end them with `truncated` (discount 1), for example in a TimeLimit "
            "wrapper, or put the time left into the observation.",
        )
    return _early_end(evidence, step, share)


def _early_end(evidence: Evidence, step: int, share: float) -> Problem | None:
    limit = evidence.facts().get("time_limit")
    is_far_below = limit is not None and step < 0.2 * limit
    if not (1 < step < 20 and share >= 0.9):
        return None
    if not (is_far_below or progress.never_rose(evidence)):
        return None
    of_limit = f" of a limit of {limit:,}" if limit else ""
    return Problem(
        f"{share:.0%} of all episodes end at step {step:,}{of_limit} with a "
        "termination, whatever the policy",
        "share of such episodes",
        share,
        0.9,
        "the condition by which the environment's step returns `terminated`.",
        is_cause_of_all=True,
    )
