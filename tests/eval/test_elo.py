import math

import numpy as np
import pytest

from tfrl.eval import elo


def test_four_hundred_points_are_ten_to_one():
    assert elo.expected_score(1_400.0, 1_000.0) == pytest.approx(10 / 11)
    np.testing.assert_allclose(
        elo.expected_score(0.0, np.array([0.0, 400.0])), [0.5, 1 / 11]
    )


@pytest.mark.parametrize(("points", "games"), [(7.5, 10), (0, 10), (10, 10), (0.5, 1)])
def test_against_one_opponent_the_rating_has_a_closed_form(points, games):
    share = (points + 0.5) / (games + 1)  # With the draw that is added.
    expected = 100 + 400 * math.log10(share / (1 - share))
    assert elo.performance([points], [games], [100]) == pytest.approx(expected)


def test_against_several_the_expected_points_are_the_actual_ones():
    points, games, ratings = [30, 12.5, 1], [32, 20, 9], [-50, 210, 600]
    rating = elo.performance(points, games, ratings)
    expected = elo.expected_score(rating, np.array(ratings))
    total = sum((n + 1) * x for n, x in zip(games, expected, strict=True))
    assert total == pytest.approx(sum(points) + 1.5)


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="got 2, 1 and 1 numbers"):
        elo.performance([1, 2], [3], [0])
    with pytest.raises(ValueError, match="got 0, 0 and 0 numbers"):
        elo.performance([], [], [])
    with pytest.raises(ValueError, match=r"got \[4.0\] of \[3.0\] games"):
        elo.performance([4], [3], [0])
