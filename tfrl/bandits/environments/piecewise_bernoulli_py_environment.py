"""Bernoulli's bandit whose probabilities change after given numbers of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment, rounds
from tfrl.specs import array_spec


class PiecewiseBernoulliPyEnvironment(bandit_py_environment.BatchedPyEnvironment):
    """Rewards are 0 or 1, by the probabilities of the current piece; no context."""

    def __init__(
        self,
        piece_means: Sequence[Sequence[float]],
        change_duration_generator: Iterator[int],
        batch_size: int | None = 1,
        *,
        seed: int | None = None,
    ) -> None:
        """Starts the first piece.

        Args:
          piece_means: The probability of the reward 1 of each arm in each piece,
            `[pieces, A]`. The first piece follows the last one.
          change_duration_generator: The number of steps of each piece; 0 skips it.
          batch_size: The number of members.
          seed: The seed of the rewards; None follows `tf.random.set_seed`.

        Raises:
          ValueError: A number is no probability.
        """
        self._piece_means = rounds.probabilities("piece_means", piece_means)
        self._durations = change_duration_generator
        self._rng = bandit_py_environment.make_rng(seed)
        self._steps_left = 0
        self._current_piece = -1
        self._begin_piece()
        super().__init__(
            array_spec.ArraySpec([1], np.int32, "observation"),
            self._piece_means.shape[1],
            batch_size,
        )

    def _begin_piece(self) -> None:
        """Goes to the next piece that has a step, if the current one has none left."""
        while self._steps_left == 0:
            self._steps_left = int(next(self._durations))
            if self._steps_left < 0:
                raise ValueError(
                    f"change_duration_generator: got {self._steps_left}, expected a "
                    "number of steps: it must be non-negative."
                )
            self._current_piece = (self._current_piece + 1) % len(self._piece_means)

    def _observe(self) -> np.ndarray:
        return np.zeros([self._size, 1], np.int32)

    def _apply_action(self, action: Any) -> np.ndarray:
        means = self._piece_means[self._current_piece, action]
        self._steps_left -= 1
        self._begin_piece()
        return self._rng.random(self._size) < means
