"""Bandit problems, as dynamics of native environments.

>>> from tfrl.bandits.environments import problems
>>> from tfrl.environments import native
>>> bandit = native.NativeEnvironment(problems.wheel(delta=0.8), batch_size=4, seed=0)
>>> bandit.reset().observation.shape, bandit.step([0, 1, 2, 3]).is_last().numpy().all()
(TensorShape([4, 2]), True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfrl.bandits.environments import rounds
from tfrl.bandits.specs.utils import checked_arms
from tfrl.environments import native
from tfrl.policies import utils as policy_utils
from tfrl.specs import bandit_spec_utils
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


def bernoulli(means: Sequence[float]) -> native.Dynamics:
    """Returns a bandit without a context, whose rewards are 0 or 1.

    Args:
      means: The probability of the reward 1 of each arm.

    Raises:
      ValueError: A number is not a probability.
    """
    probabilities = rounds.probabilities("means", means)

    def draw(random: tf.Tensor, _: tf.Tensor) -> rounds.Round:
        ones = tf.ones([random.shape[0], 1])
        return rounds.Round(ones, ones * probabilities, tf.constant(0.0))

    return rounds.dynamics(
        draw, tf.TensorSpec([1], tf.float32), len(means), 0, has_binary_rewards=True
    )


def linear(
    theta: np.ndarray | None = None,
    *,
    deviation: float = 0.1,
    low: float = -10.0,
    high: float = 10.0,
    change: rounds.World | None = None,
) -> native.Dynamics:
    """Returns a bandit whose rewards are linear in the context.

    Contexts are integers, uniform from `low` to `high - 1`, as in TF-Agents' example
    of a stationary linear bandit, whose parameters are the default, too.

    Args:
      theta: The parameters of the arms, `[A, d]`.
      deviation: The standard deviation of the rewards.
      low: The least feature of a context.
      high: The number after the largest feature.
      change: Parameters `[A, d]` that change, instead of `theta`; see `drifting` and
        `piecewise`.
    """
    table = sliding_parameters() if theta is None else np.asarray(theta, np.float32)
    if change is not None:
        table = np.zeros(change.initial(tf.zeros([change.num_randoms])).shape)
    num_actions, size = table.shape

    def draw(random: tf.Tensor, world: tf.Tensor) -> rounds.Round:
        context = tf.floor(low + (high - low) * random)
        parameters = tf.constant(table) if change is None else world
        means = tf.linalg.matmul(context, parameters, transpose_b=True)
        return rounds.Round(context, means, tf.constant(deviation))

    spec = tf.TensorSpec([size], tf.float32)
    return rounds.dynamics(draw, spec, num_actions, size, world=change)


def sliding_parameters(num_actions: int = 5, size: int = 15) -> np.ndarray:
    """Returns parameters `[A, d]`: arm a has the numbers from a to `a + d - 1`."""
    first = np.arange(size, dtype=np.float32)
    return first + np.arange(num_actions, dtype=np.float32)[:, np.newaxis]


def drifting(num_actions: int = 5, size: int = 15, rate: float = 0.01) -> rounds.World:
    """Returns parameters `[A, d]` that drift, and stay standard normal numbers.

    Args:
      num_actions: The number of arms.
      size: The number of features.
      rate: The part of a standard normal number that each round adds.
    """
    keep = math.sqrt(1 - rate**2)

    def normal(random: tf.Tensor) -> tf.Tensor:
        return tf.reshape(seeds.normal_of(random), [num_actions, size])

    return rounds.World(
        num_actions * size,
        normal,
        lambda theta, random: keep * theta + rate * normal(random),
    )


def piecewise(
    num_actions: int = 5, size: int = 15, interval: float = 1000.0
) -> rounds.World:
    """Returns parameters `[A, d]` that are drawn again at random times.

    Args:
      num_actions: The number of arms.
      size: The number of features.
      interval: The mean number of rounds between two changes.
    """

    def normal(random: tf.Tensor) -> tf.Tensor:
        return tf.reshape(seeds.normal_of(random[1:]), [num_actions, size])

    return rounds.World(
        1 + num_actions * size,
        normal,
        lambda theta, random: tf.where(
            random[0] < 1.0 / interval, normal(random), theta
        ),
    )


def per_arm_linear(
    theta: Sequence[float] = (1.0, -2.0, 3.0, 0.0, 0.0, 1.0, 1.0, -1.0),
    *,
    global_size: int = 4,
    num_actions: int = 5,
    deviation: float = 0.1,
    has_padding: bool = False,
) -> native.Dynamics:
    """Returns a bandit whose arms have features, which are drawn in each round.

    All features are uniform in [-1, 1]. An arm's expected reward is the product of
    `theta` and the global features followed by the features of the arm.

    Args:
      theta: The parameters, `[global_size + features of an arm]`.
      global_size: The number of global features.
      num_actions: The largest number of arms.
      deviation: The standard deviation of the rewards.
      has_padding: Whether rounds have 1 to `num_actions` arms, uniformly, and the
        observation says how many.
    """
    table = np.asarray(theta, np.float32)
    size = len(table) - global_size
    num_features = global_size + num_actions * size

    def draw(random: tf.Tensor, _: tf.Tensor) -> rounds.Round:
        features = 2 * random[:, :num_features] - 1
        common = features[:, :global_size]
        arms = tf.reshape(features[:, global_size:], [-1, num_actions, size])
        means = tf.linalg.matvec(arms, table[global_size:])
        means += tf.linalg.matvec(common, table[:global_size])[:, tf.newaxis]
        observation = {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: common,
            bandit_spec_utils.PER_ARM_FEATURE_KEY: arms,
        }
        if has_padding:
            number = 1 + tf.cast(random[:, -1] * num_actions, tf.int32)
            observation[bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY] = number
            mask = tf.sequence_mask(number, num_actions)
            means = policy_utils.mask_values(means, mask)
        return rounds.Round(observation, means, tf.constant(deviation))

    spec = bandit_spec_utils.create_per_arm_observation_spec(
        global_size, size, num_actions, add_num_actions_feature=has_padding
    )
    return rounds.dynamics(draw, spec, num_actions, num_features + has_padding)


def wheel(
    delta: float = 0.8,
    mu_base: Sequence[float] = (1.2, 1.0, 1.0, 1.0, 1.0),
    std_base: Sequence[float] = (0.01, 0.01, 0.01, 0.01, 0.01),
    mu_high: float = 50.0,
    std_high: float = 0.01,
) -> native.Dynamics:
    """Returns the wheel: one arm is far better outside of a circle, in each quadrant.

    Contexts are uniform in the unit circle. Riquelme et al., "Deep Bayesian bandits
    showdown" (2018, arXiv:1802.09127), section 5.4. A coordinate that is 0 counts as
    positive.

    Args:
      delta: The radius of the circle inside of which the first arm is the best.
      mu_base: The expected rewards of the five arms inside.
      std_base: The standard deviations of their rewards.
      mu_high: The expected reward of the best arm outside.
      std_high: The standard deviation of its reward.

    Raises:
      ValueError: `delta` is not between 0 and 1, or there are not five arms.
    """
    number_checks.check_number(
        "delta",
        delta,
        0,
        1,
        excludes_low=True,
        excludes_high=True,
        remedy="give a radius",
    )
    for name, values in (("mu_base", mu_base), ("std_base", std_base)):
        if len(values) != 5:
            raise ValueError(
                f"{name}: got {len(values)} numbers, expected 5, one for each arm of "
                "the wheel; give as many."
            )
    inside = [np.asarray(values, np.float32) for values in (mu_base, std_base)]

    def draw(random: tf.Tensor, _: tf.Tensor) -> rounds.Round:
        angle, radius = 2 * math.pi * random[:, 0], tf.sqrt(random[:, 1])
        x, y = radius * tf.cos(angle), radius * tf.sin(angle)
        # The quadrants of the arms 1 to 4: ++, +-, -+, --.
        best = 1 + 2 * tf.cast(x < 0, tf.int32) + tf.cast(y < 0, tf.int32)
        is_high = tf.one_hot(best, 5, on_value=True, off_value=False)
        is_high &= (radius > delta)[:, tf.newaxis]
        return rounds.Round(
            tf.stack([x, y], axis=1),
            tf.where(is_high, mu_high, inside[0]),
            tf.where(is_high, std_high, inside[1]),
        )

    return rounds.dynamics(draw, tf.TensorSpec([2], tf.float32), 5, 2)


def classification(
    features: np.ndarray,
    labels: np.ndarray,
    rewards: np.ndarray | None = None,
    deviation: float = 0.0,
) -> native.Dynamics:
    """Returns a bandit whose contexts are the rows of a data set.

    Args:
      features: The data set, `[N, d]`.
      labels: The class of each row, integers `[N]` from 0 on.
      rewards: The expected reward of each class for each arm, `[classes, A]`; None for
        1 if the arm has the number of the class, and otherwise 0.
      deviation: The standard deviation of the rewards.

    Raises:
      ValueError: The numbers of rows differ, or a label is no class from 0 on.
    """
    features = np.asarray(features, np.float32)
    labels = checked_arms("labels", labels)
    if len(features) != len(labels):
        raise ValueError(
            f"labels: got {len(labels)}, expected one for each of the {len(features)} "
            "rows of features; give as many."
        )
    if rewards is None:
        rewards = np.eye(int(labels.max()) + 1)
        if labels.min() > 0:
            raise ValueError(
                f"labels: got classes from {labels.min()} on, expected them from 0 on, "
                "each the number of an arm; subtract the least."
            )
    labels = checked_arms("labels", labels, len(rewards))
    return table(features, np.asarray(rewards)[labels], deviation)


def table(
    features: np.ndarray, means: np.ndarray, deviation: float = 0.0
) -> native.Dynamics:
    """Returns a bandit whose contexts are the rows of a table, uniformly.

    Args:
      features: The contexts, `[N, d]`.
      means: The expected reward of each arm for each row, `[N, A]`.
      deviation: The standard deviation of the rewards.
    """
    features, means = (np.asarray(each, np.float32) for each in (features, means))

    def draw(random: tf.Tensor, _: tf.Tensor) -> rounds.Round:
        row = tf.cast(random[:, 0] * len(features), tf.int32)
        return rounds.Round(
            tf.gather(features, row), tf.gather(means, row), tf.constant(deviation)
        )

    spec = tf.TensorSpec(features.shape[1:], tf.float32)
    return rounds.dynamics(draw, spec, means.shape[1], 1)


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
    return table(features, (users * strengths) @ movies.T)


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
