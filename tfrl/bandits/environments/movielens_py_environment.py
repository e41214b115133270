"""`MovieLensPyEnvironment`, recommending the same movies to users."""

from __future__ import annotations

import numpy as np

from tfrl.bandits.environments import batched_py_bandit, dataset_utilities
from tfrl.specs import array_spec


class MovieLensPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """Rewards are the ratings of movies, approximated by a matrix of low rank.

    With the singular values `R ~ U S V'` of the ratings R of the first movies, a user's
    context is the row of `U sqrt(S)`. Users of a batch differ.
    """

    def __init__(
        self,
        data_dir: str,
        rank_k: int,
        batch_size: int = 1,
        num_movies: int = 20,
        csv_delimiter: str = ",",
        name: str | None = "movielens",
        *,
        seed: int | None = None,
    ) -> None:
        """Reads the ratings.

        Args:
          data_dir: The file; see `dataset_utilities.load_movielens_data`.
          rank_k: The rank, and the number of features.
          batch_size: The number of members.
          num_movies: The number of arms; only so many movies are kept, and users who
            have rated one of them.
          csv_delimiter: What separates the columns of the file.
          name: The environment's name.
          seed: See `BatchedPyBandit`.
        """
        ratings = dataset_utilities.load_movielens_data(data_dir, csv_delimiter)
        ratings = ratings[:, :num_movies]
        ratings = ratings[ratings.sum(axis=1) > 0]
        u, s, v = dataset_utilities.truncated_svd(ratings, rank_k)
        self._contexts = u * np.sqrt(s)
        self._ratings = (u * s) @ v.T
        self._users = self._previous = np.zeros([batch_size], int)
        spec = array_spec.ArraySpec([rank_k], np.float64, "observation")
        super().__init__(spec, num_movies, batch_size, name=name, seed=seed)

    def compute_optimal_action(self) -> np.ndarray:
        """Returns the best movies of the last round, int32 `[B]`."""
        return self._ratings[self._previous].argmax(axis=1).astype(np.int32)

    def compute_optimal_reward(self) -> np.ndarray:
        """Returns the rewards of the best movies of the last round, `[B]`."""
        return self._ratings[self._previous].max(axis=1)

    def _draw(self) -> np.ndarray:
        self._previous = self._users
        self._users = self._generator.choice(
            len(self._ratings), self.batch_size, replace=False
        )
        return self._contexts[self._users]

    def _rewards(self, action: np.ndarray) -> np.ndarray:
        return self._ratings[self._users, action]
