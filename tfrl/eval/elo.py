"""Ratings of players on Elo's scale.

Elo, "The Rating of Chessplayers, Past and Present", 1978: a player who is rated 400
points above another is expected to score 10 points for each of the other's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_SCALE = 400.0
_FURTHEST = 800.0  # Beyond all opponents: nobody scores differently there.


def expected_score(rating: float, other: float | np.ndarray) -> np.ndarray:
    """Returns the expected score of a game, from 0 to 1; a draw counts a half.

    Args:
      rating: The player's rating.
      other: The ratings of the opponents.
    """
    return 1.0 / (1.0 + 10.0 ** ((np.asarray(other) - rating) / _SCALE))


def performance(
    scores: Sequence[float], games: Sequence[int], ratings: Sequence[float]
) -> float:
    """Returns the rating that makes the scores against rated opponents most likely.

    One drawn game against each opponent is added, without which a player who has won
    all games would have no finite rating.

    Args:
      scores: The points against each opponent: games won, and half of those drawn.
      games: The games against each.
      ratings: Their ratings.

    Raises:
      ValueError: The numbers of opponents differ, or there are none, or the points are
        more than the games.
    """
    points, played, others = (
        np.asarray(x, np.float64) for x in (scores, games, ratings)
    )
    if not points.shape == played.shape == others.shape or not points.size:
        raise ValueError(
            f"scores, games, ratings: got {points.size}, {played.size} and "
            f"{others.size} numbers, expected one of each for every opponent."
        )
    if (points < 0).any() or (points > played).any():
        raise ValueError(
            f"scores: got {points.tolist()} of {played.tolist()} games, expected at "
            "most a point a game."
        )
    low, high = others.min() - _FURTHEST, others.max() + _FURTHEST
    for _ in range(60):  # The expected score rises with the rating.
        middle = (low + high) / 2
        expected = (played + 1) * expected_score(middle, others)
        if expected.sum() < (points + 0.5).sum():
            low = middle
        else:
            high = middle
    return float((low + high) / 2)
