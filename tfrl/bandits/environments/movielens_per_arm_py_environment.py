"""`movielens.movielens_per_arm` of a file, in Python, at TF-Agents' path."""

from __future__ import annotations

from tfrl.bandits.environments import movielens_py_environment, problems


class MovieLensPerArmPyEnvironment(movielens_py_environment.MovieLensPyEnvironment):
    """Recommends movies of the user's file of ratings, with features of movies."""

    _problem = staticmethod(problems.movielens_per_arm)

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
        """Reads the file.

        Args:
          data_dir: The file of ratings; see `load_movielens_data`.
          rank_k: See `movielens.movielens_per_arm`.
          batch_size: See `ProblemPyEnvironment`.
          num_actions: See `movielens.movielens_per_arm`.
          csv_delimiter: See `load_movielens_data`.
          name: The environment's name.
          seed: See `ProblemPyEnvironment`.
        """
        super().__init__(
            data_dir, rank_k, batch_size, num_actions, csv_delimiter, name, seed=seed
        )
