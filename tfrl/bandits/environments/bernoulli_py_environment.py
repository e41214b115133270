"""`problems.bernoulli` in Python, at TF-Agents' path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment, problems
from tfrl.specs import array_spec


class BernoulliPyEnvironment(bandit_py_environment.ProblemPyEnvironment):
    """Rewards are 0 or 1; there is no context, and the observation is 1."""

    def __init__(
        self,
        means: Sequence[float],
        batch_size: int | None = 1,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the problem; see `problems.bernoulli` and `ProblemPyEnvironment`."""
        super().__init__(problems.bernoulli(means), batch_size, seed)
        self._observation_spec = array_spec.ArraySpec((), np.float32, "observation")

    def _observe(self) -> Any:
        return super()._observe()[:, 0]
