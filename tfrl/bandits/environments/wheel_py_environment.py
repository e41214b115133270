"""`WheelPyEnvironment`, the wheel bandit in Python, and its best arms and rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfrl.bandits.environments import batched_py_bandit, problems
from tfrl.specs import array_spec


def compute_optimal_action(observation: np.ndarray, delta: float) -> np.ndarray:
    """Returns the best arms, int32 `[B]`.

    Args:
      observation: The contexts, `[B, 2]`. A coordinate that is 0 counts as positive.
      delta: The radius of the circle inside of which arm 0 is the best.
    """
    x, y = np.transpose(observation)
    best = 1 + 2 * (x < 0) + (y < 0)
    return np.where(_is_outside(observation, delta), best, 0).astype(np.int32)


def compute_optimal_reward(
    observation: np.ndarray, delta: float, mu_inside: float, mu_high: float
) -> np.ndarray:
    """Returns the expected rewards of the best arms, float32 `[B]`.

    Args:
      observation: The contexts, `[B, 2]`.
      delta: The radius of the circle inside of which arm 0 is the best.
      mu_inside: The expected reward of arm 0 inside.
      mu_high: The expected reward of the best arm outside.
    """
    is_outside = _is_outside(observation, delta)
    return np.where(is_outside, mu_high, mu_inside).astype(np.float32)


class WheelPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """The wheel: one arm is far better outside of a circle, in each quadrant.

    `problems.wheel` is the same in TensorFlow, for loops that compile it.
    """

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
        """Makes the environment; see `problems.wheel` for other arguments.

        Args:
          delta: See `problems.wheel`.
          mu_base: See `problems.wheel`.
          std_base: See `problems.wheel`.
          mu_high: See `problems.wheel`.
          std_high: See `problems.wheel`.
          batch_size: The number of members; None for 1.
          name: The environment's name.
          seed: See `BatchedPyBandit`.

        Raises:
          ValueError: `delta` is not between 0 and 1, there are not five arms, or arm 0
            is not the best inside.
        """
        problems.check_wheel(delta, mu_base, std_base)
        if mu_base[0] != max(mu_base):
            raise ValueError(
                f"mu_base: got {list(mu_base)}, expected that the first is the "
                "largest, as arm 0 is the best inside; sort the numbers."
            )
        self._delta = delta
        self._inside = np.asarray(mu_base), np.asarray(std_base)
        self._outside = mu_high, std_high
        spec = array_spec.ArraySpec([2], np.float32, "observation")
        super().__init__(spec, 5, batch_size or 1, name=name, seed=seed)

    def _draw(self) -> np.ndarray:
        angle = self._generator.uniform(0, 2 * math.pi, self.batch_size)
        radius = np.sqrt(self._generator.random(self.batch_size))
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        return np.stack([x, y], axis=1).astype(np.float32)

    def _rewards(self, action: np.ndarray) -> np.ndarray:
        is_high = _is_outside(self._observation, self._delta) & (
            action == compute_optimal_action(self._observation, self._delta)
        )
        mean, deviation = (
            np.where(is_high, high, low[action])
            for low, high in zip(self._inside, self._outside, strict=True)
        )
        return self._generator.normal(mean, deviation)


def _is_outside(observation: np.ndarray, delta: float) -> np.ndarray:
    return np.linalg.norm(observation, axis=1) > delta
