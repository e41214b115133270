"""Reads the user's files of data sets."""

from __future__ import annotations

import csv
import os

import numpy as np


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
