"""`BernoulliPyEnvironment`, arms with rewards 0 or 1, in Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrl.bandits.environments import batched_py_bandit
from tfrl.specs import array_spec
from tfrl.utils import number_checks


class BernoulliPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """Arms whose rewards are 1 with fixed probabilities, and otherwise 0.

    `problems.bernoulli` is the same in TensorFlow, for loops that compile it.
    """

    def __init__(
        self, means: Sequence[float], batch_size: int = 1, *, seed: int | None = None
    ) -> None:
        """Makes the environment.

        Args:
          means: The probability of the reward 1 of each arm.
          batch_size: The number of members.
          seed: See `BatchedPyBandit`.

        Raises:
          ValueError: A number is not a probability.
        """
        for i, mean in enumerate(means):
            number_checks.check_number(
                f"means[{i}]", mean, 0, 1, remedy="give a probability"
            )
        self._means = np.asarray(means)
        spec = array_spec.ArraySpec([], np.float32, "observation")
        super().__init__(spec, len(means), batch_size, seed=seed)

    def _draw(self) -> np.ndarray:
        return np.ones([self.batch_size], np.float32)

    def _rewards(self, action: np.ndarray) -> np.ndarray:
        return self._generator.random(self.batch_size) < self._means[action]
