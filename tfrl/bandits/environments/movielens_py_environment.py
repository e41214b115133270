"""`movielens.movielens` of a file, in Python, at TF-Agents' path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.bandits.environments import bandit_py_environment, dataset_utilities, problems


class MovieLensPyEnvironment(bandit_py_environment.ProblemPyEnvironment):
    """Recommends movies of the user's file of ratings."""

    _problem: Callable[..., Any] = staticmethod(problems.movielens)

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
        """Reads the file.

        Args:
          data_dir: The file of ratings; see `load_movielens_data`.
          rank_k: See `movielens.movielens`.
          batch_size: See `ProblemPyEnvironment`.
          num_movies: See `movielens.movielens`.
          csv_delimiter: See `load_movielens_data`.
          name: The environment's name.
          seed: See `ProblemPyEnvironment`.
        """
        ratings = dataset_utilities.load_movielens_data(data_dir, csv_delimiter)
        dynamics = self._problem(ratings, rank_k, num_movies)
        super().__init__(dynamics, batch_size, seed, name)
