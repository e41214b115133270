"""Recommending movies: bandits whose rewards are ratings of low rank."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrl.bandits.environments import problems, rounds
from tfrl.environments import native
from tfrl.specs import bandit_spec_utils


def movielens(ratings: np.ndarray, rank_k: int, num_movies: int) -> native.Dynamics:
    """Returns a bandit whose contexts are users, and whose arms are movies.

    The rewards are those of the approximation of rank `rank_k` by singular values.

    Args:
      ratings: Ratings, `[users, movies]`; 0 for none. See `load_movielens_data`.
      rank_k: The number of features of a user.
      num_movies: The number of arms: the first movies. Users who rated none of them are
        left out.
    """
    ratings = ratings[:, :num_movies]
    users, strengths, movies = _factors(ratings[ratings.sum(axis=1) > 0], rank_k)
    features = users * np.sqrt(strengths)
    return problems.table(features, (users * strengths) @ movies.T)


def movielens_per_arm(
    ratings: np.ndarray, rank_k: int, num_actions: int = 50
) -> native.Dynamics:
    """Returns a bandit of which each round has other movies, with features.

    Args:
      ratings: See `movielens`.
      rank_k: The number of features of a user, and of a movie.
      num_actions: The number of movies of a round, which are drawn without replacement.
    """
    users, strengths, movies = _factors(ratings, rank_k)
    num_users, num_movies = ratings.shape
    means = ((users * strengths) @ movies.T).astype(np.float32)

    def draw(random: tf.Tensor, _: tf.Tensor) -> rounds.Round:
        user = tf.cast(random[:, 0] * num_users, tf.int32)
        movie = tf.math.top_k(random[:, 1:], num_actions).indices
        observation = {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: tf.gather(users, user),
            bandit_spec_utils.PER_ARM_FEATURE_KEY: tf.gather(movies, movie),
        }
        of_user = tf.gather(means, user)
        return rounds.Round(
            observation, tf.gather(of_user, movie, batch_dims=1), tf.constant(0.0)
        )

    spec = bandit_spec_utils.create_per_arm_observation_spec(
        rank_k, rank_k, num_actions
    )
    return rounds.dynamics(draw, spec, num_actions, 1 + num_movies)


def _factors(
    ratings: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns `U`, `s` and `V` of the largest singular values, float32."""
    u, s, vh = np.linalg.svd(ratings, full_matrices=False)
    parts = u[:, :rank], s[:rank], vh[:rank].T
    return tuple(part.astype(np.float32) for part in parts)  # type: ignore[return-value]
