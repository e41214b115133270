"""Estimates of a policy's value from the rounds of another policy.

Round i of N has the reward r of the arm a, which the log's policy chose with the
probability p, and the evaluated policy would choose with the probability pi: its weight
is w = pi / p. All three estimates are means of one number a round, for which
`eval.statistics.mean_interval` gives intervals. Dudik, Langford and Li, "Doubly robust
policy evaluation and learning" (2011, arXiv:1103.4601); Swaminathan and Joachims, "The
self-normalized estimator for counterfactual learning" (2015).
"""

from __future__ import annotations

import numpy as np


def ips(weight: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Returns `w r` of each round, `[N]`: without bias for exact propensities.

    Args:
      weight: The weights w, `[N]`.
      reward: The rewards r, `[N]`.
    """
    return weight * reward


def snips(weight: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Returns numbers `[N]` whose mean is `sum w r / sum w`.

    Their variance is that of the ratio, to first order (the delta method). The bias
    falls with 1 / N, and the estimate stays within the range of the rewards.

    Args:
      weight: The weights w, `[N]`, not all 0.
      reward: The rewards r, `[N]`.
    """
    value = np.sum(weight * reward) / np.sum(weight)
    return value + weight * (reward - value) / np.mean(weight)


def doubly_robust(
    weight: np.ndarray,
    reward: np.ndarray,
    predicted: np.ndarray,
    predicted_of_policy: np.ndarray,
) -> np.ndarray:
    """Returns `q(pi) + w (r - q(a))` of each round, `[N]`.

    Without bias if the propensities are exact, or the predictions are.

    Args:
      weight: The weights w, `[N]`.
      reward: The rewards r, `[N]`.
      predicted: The predicted rewards of the logged arms, `q(a)`, `[N]`.
      predicted_of_policy: The predicted rewards of the policy, `q(pi)`, `[N]`.
    """
    return predicted_of_policy + weight * (reward - predicted)
