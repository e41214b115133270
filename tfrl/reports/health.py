"""Rules that find reasons why a run may not learn, each with a figure and a source.

A rule compares a number that the run has measured with a threshold, and says what to
try first. It finds nothing if the number was not measured. The thresholds are chosen so
that healthy runs stay within them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tfrl.reports.evidence import Evidence, late_half


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is probably wrong with a run.

    Attributes:
      rule: The name of the rule.
      text: The problem, in a sentence.
      figure: The name of the number.
      value: The number.
      threshold: The bound that the number is beyond.
      remedy: What to try first.
      source: Where the threshold is from.
    """

    rule: str
    text: str
    figure: str
    value: float
    threshold: float
    remedy: str
    source: str

    def __str__(self) -> str:
        return (
            f"{self.rule}: {self.text} ({self.figure} is {self.value:.3g}, the bound "
            f"{self.threshold:.3g}). Try first: {self.remedy}"
        )


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
      name: Its name.
      source: Where its thresholds are from.
      find: Returns the text, figure, value, threshold and remedy of a problem of a run,
        or None.
    """

    name: str
    source: str
    find: Callable[[Evidence], tuple[str, str, float, float, str] | None]


def check(evidence: Evidence) -> list[Finding]:
    """Returns the findings about a run; an empty list if no rule finds anything."""
    found = [(rule, rule.find(evidence)) for rule in RULES]
    return [
        Finding(rule.name, *parts[:4], remedy=parts[4], source=rule.source)
        for rule, parts in found
        if parts is not None
    ]


def check_seeds(runs: Sequence[Evidence]) -> list[Finding]:
    """Returns the findings about several runs that differ only in their seeds."""
    parts = _seeds(runs)
    if parts is None:
        return []
    return [Finding("seeds", *parts[:4], remedy=parts[4], source=_HENDERSON)]


# The rules. A median "late" is over the second half of a run's rows.


def _values(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    pairs = evidence.column("predicted_return", "realized_return")
    late = late_half(pairs)
    if len(late) < 2:
        return None
    remedy = (
        "slower targets (a smaller target_update_tau), a smaller learning rate, "
        "double_q or several critics, and gamma below 1."
    )
    gamma = float(evidence.settings.get("gamma", 1.0))
    steps = 0.0 if gamma == 1 else 1 / (1 - gamma)
    factor = float(evidence.settings.get("reward_scale_factor", 1.0)) or 1.0
    largest = [
        *np.abs(evidence.values("evaluation_return")),
        (evidence.late("reward_size") or 0.0) / factor * steps,
        1.0,
    ]
    predicted, most = float(np.median(np.abs(late[:, 1]))), 3 * max(largest)
    if predicted > most:
        return (
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
    beyond = (abs(bias) - bonus * steps / factor) / size
    if beyond <= 1.0:
        return None
    how = "overestimates" if bias > 0 else "underestimates"
    return (
        f"the agent {how} its returns by {abs(bias):.3g}, more than their own size",
        "value error / largest return",
        beyond,
        1.0,
        remedy,
    )


def _entropy(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    pairs = evidence.column("entropy")
    if len(pairs) < 4:
        return None
    first, late = float(pairs[0, 1]), float(np.median(late_half(pairs[:, 1])))
    target = evidence.late("entropy_target")
    if target is not None:
        least = target - 2 * abs(target) - 1
        if late < least:
            return (
                "the policy's entropy stays far below its target: it explores no more",
                "entropy",
                late,
                least,
                "a larger initial_alpha or alpha_learning_rate, and rewards of size 1.",
            )
        return None
    is_continuous = len(evidence.values("actions_at_bound")) > 0
    # An entropy that is lower by 4 nats a dimension: a deviation of a fiftieth.
    least = first - 4 * max(1.0, first / 1.42) if is_continuous else 0.02
    collapsed = pairs[pairs[:, 1] < least]
    if not len(collapsed) or collapsed[0, 0] > 0.5 * pairs[-1, 0] or late >= least:
        return None
    returns = evidence.column("evaluation_return")
    after = returns[returns[:, 0] >= collapsed[0, 0], 1]
    if len(after) and after.max() > after[0] + 0.2 * (abs(after[0]) + np.ptp(after)):
        return None
    return (
        f"the policy became deterministic at iteration {int(collapsed[0, 0]):,}, and "
        "has not improved since",
        "entropy",
        float(collapsed[0, 1]),
        least,
        "more entropy_regularization, a smaller learning rate, or fewer epochs.",
    )


def _exploration(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    epsilon = evidence.values("epsilon")
    noise = [
        float(evidence.settings[name])
        for name in ("exploration_noise", "ou_stddev", "sigma")
        if name in evidence.settings
    ]
    first_steps = int(evidence.settings.get("initial_collect_steps", 0))
    is_greedy = len(epsilon) >= 4 and epsilon.max() < 1e-3
    is_silent = bool(noise) and max(noise) < 1e-3 and not len(evidence.values("alpha"))
    is_noisy_network = float(evidence.settings.get("noisy_stddev", 0.0)) > 0
    batch = int(evidence.settings.get("batch_size", 1))
    if (is_greedy or is_silent) and not is_noisy_network and first_steps <= 100 * batch:
        return (
            "the agent collects without exploring: it takes its greedy actions",
            "epsilon" if is_greedy else "exploration noise",
            float(epsilon.max()) if is_greedy else max(noise),
            1e-3,
            "initial_epsilon=1 and a final_epsilon of 0.05, or noise of 0.1 for "
            "continuous actions.",
        )
    if len(epsilon) >= 4 and epsilon[-1] > 0.5 and evidence.done() > 0.9:
        return (
            "the agent still takes mostly random actions at the end of the run",
            "epsilon",
            float(epsilon[-1]),
            0.5,
            "fewer epsilon_decay_iterations, or a longer run.",
        )
    return None


def _gradients(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    norm, weights = evidence.late("gradient_norm"), evidence.late("weights_norm")
    error = evidence.late("td_error")
    if norm is None or weights is None:
        return None
    least = 1e-7 * weights
    if norm < least and (error is None or error > 1e-6):
        return (
            "the gradients vanish although there are errors to learn from",
            "gradient_norm",
            norm,
            least,
            "look for a loss that does not reach the weights: stopped gradients, dead "
            "or saturated units, a reward_scale_factor near 0.",
        )
    for name in ("gradient_clipping", "max_gradient_norm"):
        limit = evidence.settings.get(name)
        if not limit:
            continue
        share = float(np.mean(late_half(evidence.values("gradient_norm")) > limit))
        if share > 0.9 and norm > 1e4 * limit:
            return (
                "nearly every gradient is clipped, to less than a ten-thousandth",
                "gradient_norm / limit",
                norm / limit,
                1e4,
                f"a {name} of 0.5 to 10, and rewards of size 1.",
            )
    return None


def _units(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    for name, where, most in (
        ("dormant_units", "hidden units", 0.6),
        ("dormant_layer", "units of a hidden layer", 0.95),
    ):
        share = evidence.late(name)
        if share is not None and share > most:
            return (
                f"{share:.0%} of the {where} hardly ever differ from 0",
                name,
                share,
                most,
                f"a smaller learning rate{_rates(evidence)}, scaled observations, "
                "layer normalization, or tanh instead of relu.",
            )
    return None


def _rates(evidence: Evidence) -> str:
    """Returns the learning rates of a run, such as " (learning_rate=0.001)"."""
    rates = [
        f"{name}={value:g}"
        for name, value in evidence.settings.items()
        if name.endswith("learning_rate") and isinstance(value, int | float) and value
    ]
    return f" ({', '.join(rates)})" if rates else ""


def _rewards(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    sizes = evidence.values("reward_size")
    if len(sizes) < 4:
        return None
    # The errors of returns are larger than the errors of rewards.
    size = float(np.max(sizes))
    if size < 1e-3:
        text = "no reward was seen" if size == 0 else "the rewards are very small"
        return (
            f"{text}, so that the loss has nothing to learn from",
            "reward_size",
            size,
            1e-3,
            "a larger reward_scale_factor, or more exploration if rewards are rare.",
        )
    late = evidence.late("reward_size") or 0.0
    if late > 1e3:
        return (
            "the rewards are so large that the loss sees only their sign",
            "reward_size",
            late,
            1e3,
            "a smaller reward_scale_factor, or normalize_rewards.",
        )
    names = ("min_q_value", "vmin"), ("max_q_value", "vmax")
    low, high = (
        next((evidence.settings[n] for n in pair if n in evidence.settings), None)
        for pair in names
    )
    came = evidence.late("realized_return", least=1)
    if low is None or high is None or came is None:
        return None
    factor = float(evidence.settings.get("reward_scale_factor", 1.0))
    outside = max(came * factor - high, low - came * factor) / max(high - low, 1e-6)
    if outside <= 0.25:
        return None
    return (
        f"returns of {came * factor:.3g} lie outside of the atoms' range",
        "distance / range",
        outside,
        0.25,
        "a range of atoms (max_q_value, vmax) that holds the discounted returns.",
    )


def _targets(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    target, trained = (
        evidence.late(name) for name in ("target_weights_change", "weights_change")
    )
    if target is None or not trained:
        return None
    share = target / trained
    if share >= 1e-3:
        return None
    return (
        "the target networks do not follow the networks that are trained",
        "target_weights_change / weights_change",
        share,
        1e-3,
        "target_update_tau=0.005 with target_update_period=1.",
    )


def _policy_steps(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    clipped, kl = evidence.late("clip_fraction"), evidence.late("approx_kl")
    if kl is None or clipped is None:
        return None
    remedy = "a smaller learning rate, fewer epochs, or target_kl=0.02."
    for name, value, most in (("clip_fraction", clipped, 0.5), ("approx_kl", kl, 0.1)):
        if value > most:
            return ("each update moves the policy too far", name, value, most, remedy)
    largest = float(np.max(evidence.values("approx_kl")))
    if largest < 1e-5 and clipped == 0:
        return (
            "the updates do not move the policy",
            "approx_kl",
            largest,
            1e-5,
            "a larger learning rate, more epochs, and a clip_range of 0.2.",
        )
    return None


def _critic(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    explained = evidence.values("explained_variance")
    if len(explained) < 5:
        return None
    # The returns of a solved problem hardly differ, and so there is nothing to explain.
    best = float(np.max(explained))
    mean = float(np.mean(explained[len(explained) // 4 :]))
    if best >= 0.3 or mean >= 0.05:
        return None
    weighted = "value_loss_weight" in evidence.settings
    larger = " or a larger value_loss_weight" if weighted else ""
    return (
        "the critic explains nothing of the returns",
        "largest explained_variance",
        best,
        0.3,
        f"another learning rate{_rates(evidence)}{larger}, normalized observations and "
        "rewards, and a larger network.",
    )


def _advantages(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    share = evidence.late("positive_advantages")
    if share is None or 0.03 <= share <= 0.97:
        return None
    return (
        f"nearly all advantages are {'positive' if share > 0.5 else 'negative'}",
        "positive_advantages",
        share,
        0.97 if share > 0.5 else 0.03,
        "normalize_advantages, or a critic that learns faster.",
    )


def _replay(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    batch = evidence.settings.get("batch_size")
    size = evidence.late("replay_size")
    is_queue = "max_queue_size" in evidence.settings  # Of rollouts, each used once.
    if not batch or size is None or is_queue:
        return None
    if size < 10 * batch:
        return (
            f"the replay buffer holds {int(size):,} frames for batches of {batch}",
            "replay_size",
            size,
            10.0 * batch,
            "a larger replay_capacity and more initial_collect_steps.",
        )
    steps = evidence.last("environment_steps")
    if not steps:
        return None
    drawn = evidence.last("train_steps") * batch / steps
    if drawn <= 2e4:
        return None
    return (
        f"each frame is drawn {drawn:,.0f} times",
        "updates * batch_size / steps",
        drawn,
        2e4,
        "fewer train_steps_per_iteration.",
    )


def _observations(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    size = evidence.late("observation_size")
    if size is None or evidence.settings.get("normalize_observations"):
        return None
    if 1e-3 <= size <= 100:
        return None
    return (
        "the observations are not of size 1",
        "observation_size",
        size,
        100.0 if size > 100 else 1e-3,
        "normalize_observations=True.",
    )


def _actions(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    share = evidence.late("actions_at_bound")
    if share is None or share <= 0.95:
        return None
    return (
        "a dimension's actions nearly all lie at one of its bounds",
        "actions_at_bound",
        share,
        0.95,
        "a smaller actor_learning_rate, more exploration noise, or scaled rewards.",
    )


def _clock(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    lengths, terminated = [], []
    for row in evidence.rows:
        if "evaluation_terminated" in row:
            lengths += row["evaluation_lengths"]
            terminated += row["evaluation_terminated"]
    if len(lengths) < 10:
        return None
    longest = np.array(lengths) == max(lengths)
    number, share = int(longest.sum()), float(longest.mean())
    if max(lengths) < 20 or number < 5 or share < 0.2:
        return None
    if not np.array(terminated)[longest].all():
        return None
    return (
        f"{number} episodes end at step {max(lengths):,}, the longest, with the "
        "discount 0: a time limit that counts as a termination",
        "share of such episodes",
        share,
        0.2,
        "end them with `truncated` (discount 1), for example in a TimeLimit wrapper, "
        "or put the time left into the observation.",
    )


def _evaluation(evidence: Evidence) -> tuple[str, str, float, float, str] | None:
    pairs = evidence.column("evaluation_return", "average_return")
    late, spread = late_half(pairs), evidence.return_range()
    collected = evidence.values("average_return")
    spread = max(spread, float(np.ptp(collected)) if len(collected) else 0.0)
    if len(late) < 2 or spread == 0:
        return None
    behind = float(np.median(late[:, 0] - late[:, 1])) / spread
    if behind > 0.5:
        return (
            "the evaluated policy is far worse than the collect policy",
            "difference / range of returns",
            behind,
            0.5,
            "compare both environments and their wrappers, and evaluate with "
            "greedy=False.",
        )
    *before, last = evidence.values("evaluation_return")
    lost = float(np.median(before[-max(3, len(before) // 4) :]) - last) / spread
    if len(before) < 6 or lost <= 0.4:
        return None
    return (
        "the last policy is far worse than the policies before it",
        "difference / range of returns",
        lost,
        0.4,
        "use the best policy, which a run keeps in addition to its last one, and let "
        "the "
        "learning rate fall to 0.",
    )


def _seeds(runs: Sequence[Evidence]) -> tuple[str, str, float, float, str] | None:
    curves = [run.values("evaluation_return") for run in runs]
    curves = [curve for curve in curves if len(curve) >= 3]
    if len(curves) < 3:
        return None
    spread = max(c.max() for c in curves) - min(c.min() for c in curves)
    last = np.array([np.mean(curve[-3:]) for curve in curves])
    if spread == 0:
        return None
    difference = float(np.ptp(last) / spread)
    if difference <= 0.5:
        return None
    return (
        f"the {len(last)} seeds end at returns from {last.min():.4g} to "
        f"{last.max():.4g}",
        "difference / range of returns",
        difference,
        0.5,
        "look at the findings of the worst seed, train longer, and report the mean of "
        "at least five seeds with its interval.",
    )


_HENDERSON = (
    "Henderson et al., Deep reinforcement learning that matters (2018), figure 5"
)
_PPO = "Schulman et al. (2017); Huang et al., 37 implementation details (2022)"

RULES = (
    Rule("values", "Van Hasselt et al., the deadly triad (2018), section 3", _values),
    Rule(
        "entropy", "Haarnoja et al., SAC (2018), section 5; Williams (1991)", _entropy
    ),
    Rule("gradients", "Pascanu et al., exploding gradients (2013)", _gradients),
    Rule("units", "Sokar et al., dormant neurons (2023), figure 2", _units),
    Rule("rewards", "Henderson et al. (2018), section 4, reward scale", _rewards),
    Rule("targets", "Lillicrap et al., DDPG (2016), section 3", _targets),
    Rule("policy steps", _PPO, _policy_steps),
    Rule("exploration", "Mnih et al., DQN (2015), table 1", _exploration),
    Rule("critic", "Schulman et al., GAE (2016); Andrychowicz et al. (2021)", _critic),
    Rule("advantages", "Andrychowicz et al., what matters (2021), 3.3", _advantages),
    Rule("replay", "Fedus et al., fundamentals of replay (2020), figure 2", _replay),
    Rule("observations", "Andrychowicz et al. (2021), section 3.3", _observations),
    Rule("actions", "Fujimoto et al., TD3 (2018), section 6", _actions),
    Rule("clock", "Pardo et al., time limits (2018), section 3", _clock),
    Rule("evaluation", "Machado et al., revisiting the ALE (2018)", _evaluation),
)
