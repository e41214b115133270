"""`MovieLensPerArmPyEnvironment`, recommending one of some random movies to users."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.bandits.environments import batched_py_bandit, dataset_utilities
from tfrl.specs import array_spec, bandit_spec_utils


class MovieLensPerArmPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """Rewards are the ratings of movies, approximated by a matrix of low rank.

    With the singular values `R ~ U S V'` of the ratings R, a user's features are the
    row of U, and a movie's features the row of V. Movies of a round differ.
    """

    def __init__(
        self,
        data_dir: str,
        rank_k: int,
        batch_size: int = 1,
        num_actions: int = 50,
        csv_delimiter: str = ",",
        name: str | None = "movielens_per_arm",
        *,
        seed: int | None = None,
    ) -> None:
        """Reads the ratings.

        Args:
          data_dir: The file; see `dataset_utilities.load_movielens_data`.
          rank_k: The rank, and the numbers of features.
          batch_size: The number of members.
          num_actions: The number of movies in a round.
          csv_delimiter: What separates the columns of the file.
          name: The environment's name.
          seed: See `BatchedPyBandit`.
        """
        ratings = dataset_utilities.load_movielens_data(data_dir, csv_delimiter)
        u, s, v = dataset_utilities.truncated_svd(ratings, rank_k)
        self._of_users, self._of_movies = u.astype(np.float32), v.astype(np.float32)
        self._ratings = ((u * s) @ v.T).astype(np.float32)
        self._num_movies = num_actions
        # The ratings of a round's movies, `[B, A]`.
        self._now = self._previous = np.zeros([batch_size, num_actions], np.float32)
        spec = {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: array_spec.ArraySpec(
                [rank_k], np.float32
            ),
            bandit_spec_utils.PER_ARM_FEATURE_KEY: array_spec.ArraySpec(
                [num_actions, rank_k], np.float32
            ),
        }
        super().__init__(spec, num_actions, batch_size, name=name, seed=seed)

    def compute_optimal_action(self) -> np.ndarray:
        """Returns the best arms of the last round, int32 `[B]`."""
        return self._previous.argmax(axis=1).astype(np.int32)

    def compute_optimal_reward(self) -> np.ndarray:
        """Returns the rewards of the best arms of the last round, `[B]`."""
        return self._previous.max(axis=1)

    def _draw(self) -> dict[str, Any]:
        num_users, num_movies = self._ratings.shape
        users = self._generator.integers(num_users, size=self.batch_size)
        # The first places of a random order of all movies.
        order = self._generator.random([self.batch_size, num_movies]).argsort(axis=1)
        movies = order[:, : self._num_movies]
        self._previous = self._now
        self._now = self._ratings[users[:, np.newaxis], movies]
        return {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: self._of_users[users],
            bandit_spec_utils.PER_ARM_FEATURE_KEY: self._of_movies[movies],
        }

    def _rewards(self, action: np.ndarray) -> np.ndarray:
        return self._now[np.arange(self.batch_size), action]
