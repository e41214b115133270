"""Rules that find reasons why a run may not learn, each with a figure and a source.

A rule compares a number that the run has measured with a threshold, and says what to
try first. It finds nothing if the number was not measured. The thresholds are chosen so
that healthy runs stay within them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tfrl.reports.evidence import Evidence
from tfrl.reports.rules import (
    of_environment,
    of_evaluation,
    of_policy,
    of_training,
    of_values,
    progress,
)
from tfrl.reports.rules.rule import Problem, Rule


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


def check(evidence: Evidence) -> list[Finding]:
    """Returns the findings about a run; an empty list if no rule finds anything."""
    all_found = [(rule, rule.find(evidence)) for rule in RULES]
    found = [(rule, problem) for rule, problem in all_found if problem is not None]
    if any(problem.is_cause_of_all for _, problem in found):
        found = [
            (rule, problem)
            for rule, problem in found
            if problem.is_cause_of_all or rule.name == "learning"
        ]
    return [
        Finding(rule.name, *problem[:4], remedy=problem.remedy, source=rule.source)
        for rule, problem in found
    ]


def check_seeds(runs: Sequence[Evidence]) -> list[Finding]:
    """Returns the findings about several runs that differ only in their seeds."""
    problem = _seeds(runs)
    if problem is None:
        return []
    return [Finding("seeds", *problem[:4], remedy=problem.remedy, source=_HENDERSON)]


def _seeds(runs: Sequence[Evidence]) -> Problem | None:
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
    return Problem(
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
_ADAM = "Kingma and Ba, Adam (2015), section 2.1"

RULES = (
    Rule("learning", "the evaluation of the untrained policy", progress.find),
    Rule(
        "observations",
        "Andrychowicz et al. (2021), section 3.3",
        of_environment.observations,
    ),
    Rule("actions", "Fujimoto et al., TD3 (2018), section 6", of_environment.actions),
    Rule(
        "rewards",
        "Henderson et al. (2018), section 4, reward scale",
        of_environment.rewards,
    ),
    Rule("clock", "Pardo et al., time limits (2018), section 3", of_environment.clock),
    Rule("evaluation", "Machado et al., revisiting the ALE (2018)", of_evaluation.find),
    Rule("learning rate", _ADAM, of_training.learning_rate),
    Rule("discount", "Sutton and Barto (2018), section 3.3", of_values.discount),
    Rule(
        "values",
        "Van Hasselt et al., the deadly triad (2018), section 3",
        of_values.values,
    ),
    Rule(
        "entropy",
        "Haarnoja et al., SAC (2018), section 5; Williams (1991)",
        of_policy.entropy,
    ),
    Rule(
        "gradients", "Pascanu et al., exploding gradients (2013)", of_training.gradients
    ),
    Rule("units", "Sokar et al., dormant neurons (2023), figure 2", of_training.units),
    Rule("targets", "Lillicrap et al., DDPG (2016), section 3", of_values.targets),
    Rule("policy steps", _PPO, of_policy.steps),
    Rule("exploration", "Mnih et al., DQN (2015), table 1", of_policy.exploration),
    Rule(
        "critic",
        "Schulman et al., GAE (2016); Andrychowicz et al. (2021)",
        of_values.critic,
    ),
    Rule(
        "advantages",
        "Andrychowicz et al., what matters (2021), 3.3",
        of_values.advantages,
    ),
    Rule(
        "replay",
        "Fedus et al., fundamentals of replay (2020), figure 2",
        of_training.replay,
    ),
)
