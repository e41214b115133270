"""Statistics over seeds."""

import functools
import itertools
import json
import pathlib

import numpy as np
import pytest
from scipy import stats

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


def test_nan_counts_as_the_lowest_score():
    """Not as the highest one, and not as if there were no such run."""
    nan, lowest = np.nan, -np.inf
    assert statistics.interquartile_mean([1, nan, 3, 2]) == 1.5
    assert statistics.interquartile_mean([1, nan, nan, 2]) == lowest
    summary = statistics.summarize([1, 2, nan, 4, 5])
    assert (summary.median, summary.lower_quartile, summary.mean) == (2, 1, lowest)
    assert summary.interquartile_mean == pytest.approx(7 / 3)
    assert summary.interval[0] == summary.interquartile_mean_interval[0] == lowest
    assert 2 < summary.interval[1] <= 5
    assert statistics.summarize([1, nan]).lower_quartile == lowest

    improvement = statistics.probability_of_improvement
    assert improvement([[nan], [2]], [[nan], [1]]) == (0.5 + 1 + 1) / 4
    profile = statistics.performance_profile([[1, nan], [nan, 2]], [0, 1])
    assert profile.tolist() == [0.5, 0.25]
    found = statistics.stratified_bootstrap(
        statistics.pooled_interquartile_mean, [[1.0, 2.0], [nan, 4.0]]
    )
    assert (found.value.tolist(), found.upper.tolist()) == ([lowest, 3], [1, 4])
    assert statistics.profile_thresholds([nan, 1, lowest]).tolist() == [0, 1, 2]
    assert statistics.profile_thresholds([nan]).tolist() == [-1, 0, 1]


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


@pytest.mark.parametrize("number", [2, 3, 5, 32])
def test_the_interval_of_a_mean_is_students(number):
    scores = np.random.default_rng(0).normal(size=number)
    expected = stats.ttest_1samp(scores, 0).confidence_interval(0.9)
    found = statistics.mean_interval(scores, confidence=0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_interval_of_a_mean_takes_two_scores_that_are_numbers():
    with pytest.raises(ValueError, match="scores: got 1, expected at least 2"):
        statistics.mean_interval([3.0])
    assert statistics.mean_interval([3.0, np.nan]) == (-np.inf, -np.inf)


def test_a_profile_counts_the_scores_above_each_threshold():
    """3 runs of 2 tasks; a score at the threshold is not above it."""
    scores = [[0, 1], [2, 3], [2, 5]]
    found = statistics.performance_profile(scores, [-0.5, 0, 1.5, 2, 5])
    np.testing.assert_array_equal(found, np.array([6, 5, 4, 2, 0]) / 6)


def test_worked_probabilities_of_improvement():
    """Each of 3 runs against each of 2; equal scores count one half."""
    # 1 beats 0; 2 beats 0 and ties 2; 3 beats both: (1 + 1.5 + 2) / 6.
    assert statistics.probability_of_improvement([[1], [2], [3]], [[0], [2]]) == 0.75
    # A second task, which X loses, halves it.
    x, y = [[1, -1], [2, -1], [3, -2]], [[0, 0], [2, 0]]
    assert statistics.probability_of_improvement(x, y) == 0.375
    assert statistics.probability_of_improvement(y, x) == 0.625
    assert statistics.probability_of_improvement([[1]], [[1]]) == 0.5
    assert statistics.probability_of_improvement([[np.inf]], [[np.inf]]) == 0.5


def compared_scores(num_runs_x=7, num_runs_y=4, num_tasks=3):
    """Whole numbers, so that many are equal."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, (num_runs_x, num_tasks))
    return x, rng.integers(1, 5, (num_runs_y, num_tasks))


def test_the_probability_of_improvement_is_that_of_mann_and_whitney():
    x, y = compared_scores()
    u = stats.mannwhitneyu(x, y, axis=0).statistic
    found = statistics.probability_of_improvement(x, y)
    assert found == pytest.approx(np.mean(u / (7 * 4)), abs=1e-15)


def test_statistics_of_many_resamples_at_once_are_those_of_each():
    x, y = compared_scores(num_runs_x=12)
    x = x.reshape(2, 6, 3)
    np.testing.assert_array_equal(
        statistics.probability_of_improvement(x, np.stack([y, y])),
        [statistics.probability_of_improvement(each, y) for each in x],
    )
    np.testing.assert_array_equal(
        statistics.performance_profile(x, [1, 2]),
        [statistics.performance_profile(each, [1, 2]) for each in x],
    )


def test_the_bootstrap_has_the_quantiles_of_all_resamples():
    """All 27 resamples of X meet all 27 of Y; every pair of them is equally likely."""
    x, y = [[1.0], [2.0], [4.0]], [[0.0], [2.0], [3.0]]
    every = [
        np.mean([(a > b) + (a == b) / 2 for a in xs for b in ys])
        for xs in itertools.product((1, 2, 4), repeat=3)
        for ys in itertools.product((0, 2, 3), repeat=3)
    ]
    found = statistics.stratified_bootstrap(
        statistics.probability_of_improvement, x, y, confidence=0.8
    )
    assert found.value == pytest.approx(5.5 / 9)
    # Half of a step between two probabilities.
    expected = np.quantile(every, [0.1, 0.9])
    np.testing.assert_allclose([found.lower, found.upper], expected, atol=1 / 36)


def test_the_bootstrap_keeps_the_tasks():
    """Each task's scores are equal, so that no resample differs."""
    profile = functools.partial(statistics.performance_profile, thresholds=[0, 1, 2])
    found = statistics.stratified_bootstrap(profile, [[1, 2, 3]] * 4, num_resamples=50)
    for values in (found.value, found.lower, found.upper):
        np.testing.assert_allclose(values, [1, 2 / 3, 1 / 3])


def test_each_task_draws_runs_of_its_own():
    """Two tasks whose scores cancel within a run, but not between runs."""
    scores = np.array([[1.0, -1.0], [-1.0, 1.0]] * 4)
    found = statistics.stratified_bootstrap(
        lambda drawn: np.mean(drawn, axis=(-2, -1)), scores
    )
    half = 1.96 / np.sqrt(scores.size)
    assert found.lower == pytest.approx(-half, abs=0.06)
    assert found.upper == pytest.approx(half, abs=0.06)


def test_every_resample_is_a_draw_of_its_own():
    drawn = []

    def statistic(scores):
        drawn.append(scores)
        return np.mean(scores, axis=(-2, -1))

    scores = np.arange(60.0).reshape(30, 2)
    statistics.stratified_bootstrap(statistic, scores, num_resamples=250)
    *resamples, original = drawn
    np.testing.assert_array_equal(original, scores)
    resamples = np.concatenate(resamples)
    assert len(resamples) == len(np.unique(resamples, axis=0)) == 250
    assert np.all(resamples[..., 0] % 2 == 0)
    assert np.all(resamples[..., 1] % 2 == 1)


def test_a_single_run_leaves_no_width():
    found = statistics.stratified_bootstrap(
        statistics.probability_of_improvement, [[1, 5]], [[2, 2]], num_resamples=20
    )
    assert (found.value, found.lower, found.upper) == (0.5, 0.5, 0.5)


def test_the_stratified_bootstrap_is_decided_by_its_seed():
    x, y = compared_scores()
    found = [
        statistics.stratified_bootstrap(
            statistics.probability_of_improvement, x, y, num_resamples=130, seed=seed
        )
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]


def test_intervals_hold_the_true_statistic_about_as_often_as_they_say():
    """Normal scores of 12 runs on 2 tasks, X's higher by 1/2.

    The tolerance is three standard deviations of 200 draws, and the 3 % that intervals
    over so few runs are too short by.
    """
    rng = np.random.default_rng(0)
    improvement = stats.norm.cdf(0.5 / np.sqrt(2))
    above = stats.norm.sf(0.3, 0.5)
    profile = functools.partial(statistics.performance_profile, thresholds=[0.3])
    held = []
    for seed in range(200):
        x, y = rng.normal(0.5, size=(12, 2)), rng.normal(size=(12, 2))
        resamples = {"num_resamples": 500, "seed": seed}
        compared = statistics.stratified_bootstrap(
            statistics.probability_of_improvement, x, y, **resamples
        )
        profiled = statistics.stratified_bootstrap(profile, x, **resamples)
        held.append(
            (
                compared.lower <= improvement <= compared.upper,
                profiled.lower[0] <= above <= profiled.upper[0],
            )
        )
    np.testing.assert_allclose(np.mean(held, axis=0), 0.95, atol=0.03 + 3 * 0.0154)


def test_bad_scores_of_runs_and_tasks_are_refused():
    good, improvement = [[1, 2]], statistics.probability_of_improvement
    with pytest.raises(ValueError, match=r"scores_x: got shape \(2,\), .* column"):
        improvement([1, 2], good)
    with pytest.raises(ValueError, match=r"scores_y: got shape \(0, 2\), .* not empty"):
        improvement(good, np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"scores_y: got 3 tasks, expected 2"):
        improvement(good, [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"thresholds: got shape \(\), expected \[N\]"):
        statistics.performance_profile(good, 0.5)
    with pytest.raises(ValueError, match=r"scores\[1\]: got shape \(1, 1, 2\)"):
        statistics.stratified_bootstrap(improvement, good, [good])
    with pytest.raises(ValueError, match=r"confidence: got 95, .* 0\.95"):
        statistics.stratified_bootstrap(improvement, good, good, confidence=95)
    with pytest.raises(ValueError, match="num_resamples: got 0, expected at least 1"):
        statistics.stratified_bootstrap(improvement, good, good, num_resamples=0)


def test_thresholds_of_a_profile_are_all_scores_between_two_margins():
    found = statistics.profile_thresholds(np.array([[3.0], [1.0], [3.0]]))
    np.testing.assert_allclose(found, [0.9, 1, 3, 3.1])
    np.testing.assert_allclose(statistics.profile_thresholds([5.0]), [4, 5, 6])


def test_pooled_means_take_all_runs_of_all_tasks():
    """4 runs of one task and 2 of another, at 2 evaluations."""
    one = np.array([[1, 2], [3, 4], [5, 6], [7, 80]])
    other = np.array([[0, 100], [9, 5]])
    found = statistics.pooled_interquartile_mean(one, other)
    np.testing.assert_array_equal(found, [(1 + 3 + 5 + 7) / 4, (4 + 5 + 6 + 80) / 4])


@pytest.fixture(scope="module")
def rliable():
    """What another library computes on the same scores `[runs, tasks, evaluations]`."""
    path = pathlib.Path(__file__).with_name("rliable_results.json")
    return json.loads(path.read_text())


def columns_of(scores):
    """The scores of each task, `[runs, evaluations]`."""
    return list(np.moveaxis(np.array(scores), 1, 0))


def check_estimate(found, expected):
    """Estimates are equal; intervals of 95 % agree but for the noise of resampling."""
    value, lower, upper = expected
    np.testing.assert_allclose(found.value, value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.lower, lower, atol=0.02)
    np.testing.assert_allclose(found.upper, upper, atol=0.02)


def test_interquartile_means_and_curves_are_rliables(rliable):
    for name, scores in rliable["scores"].items():
        tasks = columns_of(scores)
        mean = statistics.pooled_interquartile_mean
        last = [task[:, -1:] for task in tasks]
        check_estimate(
            statistics.stratified_bootstrap(mean, *last),
            np.reshape(rliable["iqm"][name], [3, 1]),
        )
        check_estimate(
            statistics.stratified_bootstrap(mean, *tasks), rliable["curve"][name]
        )


def test_the_probability_of_improvement_and_profiles_are_rliables(rliable):
    x, y = (np.array(scores)[..., -1] for scores in rliable["scores"].values())
    check_estimate(
        statistics.stratified_bootstrap(statistics.probability_of_improvement, x, y),
        rliable["improvement"],
    )
    pairs = [side[:, i : i + 1] for i in range(x.shape[1]) for side in (x, y)]
    check_estimate(
        statistics.stratified_bootstrap(
            statistics.mean_probability_of_improvement, *pairs
        ),
        rliable["improvement"],
    )
    profile = functools.partial(
        statistics.performance_profile, thresholds=rliable["thresholds"]
    )
    for scores, expected in zip((x, y), rliable["profile"].values(), strict=True):
        # A profile of 18 scores has steps of 1 / 18.
        found = statistics.stratified_bootstrap(profile, scores)
        np.testing.assert_allclose(found.value, expected[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.lower, expected[1], atol=1 / 18 + 1e-9)
        np.testing.assert_allclose(found.upper, expected[2], atol=1 / 18 + 1e-9)


@pytest.mark.parametrize(("probability", "num_tasks"), [(0.7, 1), (0.3, 1), (0.65, 3)])
def test_so_many_runs_decide_as_often_as_they_say(probability, num_tasks):
    """Normal scores whose means differ by as much as the probability says.

    A test of Mann and Whitney, whose statistic is the mean over the tasks, finds the
    difference in 80 % of the cases: the tolerance is three standard deviations of 1000
    draws, and the 2 % of the approximation.
    """
    number = statistics.runs_to_decide(probability, num_tasks)
    shift = np.sqrt(2) * stats.norm.ppf(probability)
    rng = np.random.default_rng(0)
    shape = (1000, number, num_tasks)
    found = statistics.probability_of_improvement(
        rng.normal(shift, 1, shape), rng.normal(0, 1, shape)
    )
    deviation = np.sqrt((2 * number + 1) / (12 * number**2 * num_tasks))
    decided = np.abs(found - 0.5) > 1.96 * deviation
    assert np.mean(decided) == pytest.approx(0.8, abs=0.02 + 3 * 0.0127)


def test_a_comparison_takes_as_many_runs_as_its_order_can_show():
    """Of 3 and 3 runs one order in 10 is complete, of 4 and 4 one in 35."""
    assert not statistics.is_enough(3, 3)
    assert statistics.is_enough(4, 4)
    assert statistics.is_enough(3, 3, confidence=0.89)
    assert statistics.is_enough(2, 2, num_tasks=3)
    exact = stats.mannwhitneyu([4, 5, 6], [1, 2, 3], method="exact").pvalue
    assert exact == pytest.approx(0.1)
    # (1.96 + 0.84)^2 / (6 * 0.25) = 5.2.
    assert statistics.runs_to_decide(1.0) == 6
    assert statistics.runs_to_decide(0.0) == 6
    assert statistics.runs_to_decide(1.0, confidence=0.5, power=0.5) == 2
    assert statistics.runs_to_decide(0.5) == np.inf
