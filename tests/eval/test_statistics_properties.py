"""Statistics of scores against NumPy and SciPy."""

import math

import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tfrl.eval import statistics

SCORES = st.floats(-1e6, 1e6)
MANY = st.lists(SCORES, min_size=1, max_size=12)
# Few different scores, so that many are equal, and some runs that diverged.
GRADES = st.sampled_from([math.nan, -1.0, 0.0, 0.5, 2.0])


def tables(runs, tasks):
    size = runs * tasks
    return st.lists(GRADES, min_size=size, max_size=size).map(
        lambda x: np.reshape(x, (runs, tasks))
    )


@given(MANY)
def test_a_summary_is_of_numpy_and_scipy(scores):
    found = statistics.summarize(scores)
    expected = np.mean(scores), *np.quantile(scores, [0.5, 0.25, 0.75])
    got = found.mean, found.median, found.lower_quartile, found.upper_quartile
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    trimmed = scipy.stats.trim_mean(scores, 0.25)
    np.testing.assert_allclose(found.interquartile_mean, trimmed, atol=1e-6)
    for low, high in (found.interval, found.interquartile_mean_interval):
        assert min(scores) - 1e-6 <= low <= high <= max(scores) + 1e-6


@given(MANY, st.integers(1, 8))
def test_runs_that_diverged_are_the_lowest_scores(scores, number):
    whole = [*scores, *[math.nan] * number]
    quartiles = statistics.summarize(whole)
    ordered = [*[-math.inf] * number, *sorted(scores)]
    place = (len(ordered) - 1) / 2
    if ordered[math.floor(place)] > -math.inf:
        median = (ordered[math.floor(place)] + ordered[math.ceil(place)]) / 2
        np.testing.assert_allclose(quartiles.median, median, rtol=1e-9, atol=1e-9)
    else:
        assert quartiles.median == -math.inf
    assert quartiles.mean == -math.inf


@given(st.floats(0.501, 0.9999), st.integers(1, 200))
def test_students_quantile_is_scipys(share, freedom):
    got = statistics.student_quantile(share, freedom)
    expected = scipy.stats.t.ppf(share, freedom)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


@given(
    st.lists(SCORES, min_size=2, max_size=12), st.sampled_from([0.5, 0.9, 0.95, 0.99])
)
def test_the_interval_of_the_mean_is_scipys(scores, confidence):
    got = statistics.mean_interval(scores, confidence)
    error = np.std(scores, ddof=1) / math.sqrt(len(scores))
    mean = np.mean(scores)
    reach = scipy.stats.t.ppf((1 + confidence) / 2, len(scores) - 1) * error
    np.testing.assert_allclose(got, (mean - reach, mean + reach), rtol=1e-3, atol=1e-3)


@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))
def test_the_probability_of_improvement_is_mann_whitneys(data, tasks, m, n):
    x, y = data.draw(tables(m, tasks)), data.draw(tables(n, tasks))
    each = [
        scipy.stats.mannwhitneyu(
            *(np.nan_to_num(scores[:, task], nan=-1e9) for scores in (x, y))
        ).statistic
        / (m * n)
        for task in range(tasks)
    ]
    got = statistics.probability_of_improvement(x, y)
    np.testing.assert_allclose(got, np.mean(each))
    np.testing.assert_allclose(got + statistics.probability_of_improvement(y, x), 1)


@given(st.data(), st.integers(1, 4), st.integers(1, 3))
def test_a_profile_is_the_share_of_runs_above(data, runs, tasks):
    scores = data.draw(tables(runs, tasks))
    thresholds = statistics.profile_thresholds(scores)
    got = statistics.performance_profile(scores, thresholds)
    expected = [sum(x > limit for x in scores.flat) for limit in thresholds]
    np.testing.assert_allclose(got, np.array(expected) / scores.size)
    # From all runs that did not diverge to none.
    assert got[0] == np.mean(np.isfinite(scores))
    assert got[-1] == 0


@given(
    st.data(), st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.5, 0.9, 0.99])
)
def test_a_stratified_bootstrap_keeps_the_tasks(data, runs, tasks, confidence):
    # The scores of a task lie far from those of the others.
    places = 100.0 * np.arange(tasks)
    scores = np.nan_to_num(data.draw(tables(runs, tasks))) + places
    found = statistics.stratified_bootstrap(
        lambda x: np.mean(x, axis=-2), scores, confidence=confidence, num_resamples=50
    )
    np.testing.assert_allclose(found.value, scores.mean(0))
    for end in (found.lower, found.upper):
        assert np.all((scores.min(0) <= end) & (end <= scores.max(0)))
    assert np.all(found.lower <= found.upper)
