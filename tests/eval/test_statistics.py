"""Statistics over seeds."""

import numpy as np
import pytest

from tfrl.eval import statistics


def test_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert statistics.interquartile_mean([1000, 1, 2, 3, 4, 5, 6, -1000]) == 3.5
    # 5 // 4 = 1 score at each end.
    assert statistics.interquartile_mean([0, 1, 2, 6, 100]) == 3


def test_interquartile_mean_of_few_scores_is_their_mean():
    assert statistics.interquartile_mean([1, 2, 6]) == 3


def test_interquartile_mean_along_an_axis():
    scores = [[0, 1, 2, 100], [0, 3, 5, 100]]
    assert statistics.interquartile_mean(scores).tolist() == [1.5, 4]
    assert statistics.interquartile_mean(np.transpose(scores), axis=0).tolist() == [
        1.5,
        4,
    ]


def test_summary_of_worked_scores():
    summary = statistics.summarize([1, 2, 3, 4, 10])
    assert (summary.mean, summary.median) == (4, 3)
    assert (summary.lower_quartile, summary.upper_quartile) == (2, 4)
    assert summary.interquartile_mean == 3
    assert summary.interval[0] < 4 < summary.interval[1]
    low, high = summary.interquartile_mean_interval
    assert 1 <= low < 3 < high <= 10


def test_bootstrap_interval_of_the_mean_agrees_with_the_normal_one():
    scores = np.random.default_rng(0).normal(size=400)
    low, high = statistics.bootstrap_interval(scores)
    half = 1.96 * scores.std() / 20
    assert low == pytest.approx(scores.mean() - half, abs=0.01)
    assert high == pytest.approx(scores.mean() + half, abs=0.01)


def test_bootstrap_is_decided_by_its_seed():
    def interval(seed):
        return statistics.bootstrap_interval(
            [1, 2, 3, 7], statistics.interquartile_mean, num_resamples=50, seed=seed
        )

    assert interval(0) == interval(0)
    assert interval(0) != interval(1)


def test_equal_scores_leave_no_uncertainty():
    assert statistics.bootstrap_interval([5, 5, 5]) == (5, 5)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"scores: got shape \(0,\)"):
        statistics.summarize([])
    with pytest.raises(ValueError, match=r"confidence: got 95, .* 0\.95"):
        statistics.bootstrap_interval([1, 2], confidence=95)
