"""Reads the user's files of data sets."""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np
import tensorflow as tf


def load_movielens_data(
    data_file: str | os.PathLike[str], delimiter: str = ","
) -> np.ndarray:
    """Returns the ratings of a MovieLens file, float64 `[users, movies]`; 0 for none.

    Args:
      data_file: A file whose rows have a user's number and a movie's, from 1 on, the
        rating, and anything after it; such as `u.data` of MovieLens 100k.
      delimiter: What is between two entries; a tab in `u.data`.

    Raises:
      ValueError: The file has no rows.
    """
    with open(data_file, newline="") as file:
        rows = [row[:3] for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        raise ValueError(
            f"data_file: got {os.fspath(data_file)!r} without rows, expected users, "
            "movies and ratings; give MovieLens' file of ratings."
        )
    table = np.asarray(rows, np.float64)
    users, movies = table[:, :2].astype(np.int64).T - 1
    ratings = np.zeros([users.max() + 1, movies.max() + 1])
    ratings[users, movies] = table[:, 2]
    return ratings


def convert_mushroom_csv_to_tf_dataset(
    file_path: str, buffer_size: int = 40000
) -> tf.data.Dataset:
    """Returns the mushrooms, repeated and shuffled, without batches.

    The elements are pairs of one-hot features, float32 `[117]` for the whole data set,
    and an int32 label: 1 for edible mushrooms, and 0 for poisonous ones.

    Args:
      file_path: A file of UCI's format: 23 columns of letters, the label first.
      buffer_size: The size of the buffer that shuffles.

    Raises:
      ValueError: The file has another format.
    """
    rows = np.genfromtxt(file_path, str, delimiter=",", ndmin=2)
    if rows.shape[1] != 23 or set(rows[:, 0]) != {"e", "p"}:
        raise ValueError(
            f"file_path: got {rows.shape[1]} columns, the first with the values "
            f"{sorted(set(rows[:, 0]))[:5]}, expected 23 columns, the first with e and "
            "p; give UCI's file agaricus-lepiota.data."
        )
    features = [_one_hot(column) for column in rows[:, 1:].T]
    is_edible = (rows[:, 0] == "e").astype(np.int32)
    return _shuffled(np.concatenate(features, axis=1), is_edible, buffer_size)


def mushroom_reward_distribution(
    r_noeat: float,
    r_eat_safe: float,
    r_eat_poison_bad: float,
    r_eat_poison_good: float,
    prob_poison_bad: float,
) -> Any:
    """Returns a distribution with event shape `[2, 2]`: class and arm.

    Arm 1 eats the mushroom, and class 0 is the poisonous one.

    Args:
      r_noeat: The reward of arm 0.
      r_eat_safe: The reward of eating an edible mushroom.
      r_eat_poison_bad: The reward of eating a poisonous mushroom that poisons.
      r_eat_poison_good: The reward of eating a poisonous mushroom that does not.
      prob_poison_bad: The probability that it poisons.
    """
    import tensorflow_probability as tfp

    # Only a poisonous mushroom that is eaten has two outcomes.
    poisons = tfp.distributions.Bernoulli(
        probs=[[0.0, prob_poison_bad], [0.0, 0.0]], dtype=tf.float32
    )
    least = np.array([[r_noeat, r_eat_poison_good], [r_noeat, r_eat_safe]], np.float32)
    change = np.array([[1, r_eat_poison_bad - r_eat_poison_good], [1, 1]], np.float32)
    move = tfp.bijectors.Shift(least)(tfp.bijectors.Scale(change))
    return tfp.distributions.Independent(move(poisons), 2)


def convert_covertype_dataset(
    file_path: str, buffer_size: int = 40000
) -> tf.data.Dataset:
    """Returns the forests' cover types, repeated and shuffled, without batches.

    The elements are pairs of features, float32 `[54]`, and an int32 label from 0 to 6.

    Args:
      file_path: A file of UCI's format: integers, the label from 1 to 7 last.
      buffer_size: The size of the buffer that shuffles.
    """
    rows = np.genfromtxt(file_path, int, delimiter=",", ndmin=2)
    return _shuffled(rows[:, :-1], rows[:, -1] - 1, buffer_size)


def _one_hot(column: np.ndarray) -> np.ndarray:
    """Returns a column of letters as numbers 0 and 1, `[N, letters]`."""
    return column[:, np.newaxis] == np.unique(column)


def _shuffled(features: Any, labels: Any, buffer_size: int) -> tf.data.Dataset:
    rows = np.asarray(features, np.float32), np.asarray(labels, np.int32)
    dataset = tf.data.Dataset.from_tensor_slices(rows)
    return dataset.repeat().shuffle(buffer_size)
