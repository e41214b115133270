"""`problems.wheel` in Python, at TF-Agents' path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment, problems


class WheelPyEnvironment(bandit_py_environment.ProblemPyEnvironment):
    """One arm is far better outside of a circle, in each quadrant."""

    def __init__(
        self,
        delta: float,
        mu_base: Sequence[float],
        std_base: Sequence[float],
        mu_high: float,
        std_high: float,
        batch_size: int | None = None,
        name: str | None = "wheel",
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the problem; see `problems.wheel` and `ProblemPyEnvironment`."""
        dynamics = problems.wheel(delta, mu_base, std_base, mu_high, std_high)
        super().__init__(dynamics, batch_size, seed, name)


def compute_optimal_action(observation: Any, delta: float) -> np.ndarray:
    """Returns the best arms, int32 `[B]`, of contexts `[B, 2]`."""
    x, y = np.asarray(observation).T
    best = 1 + 2 * (x < 0) + (y < 0)
    return np.where(np.hypot(x, y) > delta, best, 0).astype(np.int32)


def compute_optimal_reward(
    observation: Any, delta: float, mu_inside: float, mu_high: float
) -> np.ndarray:
    """Returns the expected rewards of the best arms, float32 `[B]`."""
    is_outside = compute_optimal_action(observation, delta) > 0
    return np.where(is_outside, mu_high, mu_inside).astype(np.float32)
