"""The test and the interval of the probability of improvement, for few runs."""

import numpy as np
import pytest
from scipy import stats

from tfrl.eval import rank_tests, statistics


def column(*scores):
    return np.reshape(np.array(scores, float), [-1, 1])


@pytest.mark.parametrize("sizes", [(2, 3), (4, 4), (5, 3), (7, 6)])
def test_without_equal_scores_it_is_the_exact_test_of_mann_and_whitney(sizes):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = (rng.normal(size=size) for size in sizes)
        expected = stats.mannwhitneyu(x, y, method="exact").pvalue
        assert rank_tests.p_value(column(*x), column(*y)) == pytest.approx(expected)


def test_a_worked_p_value_with_equal_scores():
    """X has 3 3, Y 1 3. Of 6 assignments, 3 give X a 1, and the others none."""
    assert rank_tests.p_value(column(3, 3), column(1, 3)) == 1
    # 4 4 4 against 1 1 1: the two complete orders of 20 assignments.
    assert rank_tests.p_value(column(4, 4, 4), column(1, 1, 1)) == pytest.approx(0.1)
    assert rank_tests.p_value(column(5, 5, 5), column(5, 5)) == 1


def test_tasks_decide_together():
    """Complete orders on two tasks: 2 of 20 * 20 assignments."""
    x, y = column(4, 5, 6), column(1, 2, 3)
    assert rank_tests.p_value(x, y, x, y) == pytest.approx(2 / 400)
    assert rank_tests.p_value(x, y, y, x) == 1


def test_many_runs_are_tested_by_draws_that_agree_with_the_exact_test():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.6, 1, (20, 1)), rng.normal(0, 1, (22, 1))
    expected = stats.mannwhitneyu(x[:, 0], y[:, 0], method="exact").pvalue
    found = rank_tests.p_value(x, y)
    deviation = np.sqrt(expected * (1 - expected) / 10_000)
    assert found == pytest.approx(expected, abs=4 * deviation)
    assert found == rank_tests.p_value(x, y) != rank_tests.p_value(x, y, seed=1)
    # Of 10,000 draws none is as far; the actual assignment counts as one.
    apart = rank_tests.p_value(x + 100, y)
    assert apart == pytest.approx(1 / 10_001)


def draw(kind, rng, number):
    """Returns of equal agents; half of the bimodal ones are at a maximum."""
    if kind == "normal":
        return rng.normal(size=(number, 1))
    if kind == "skewed":
        return np.exp(rng.normal(size=(number, 1)))
    solved = rng.random((number, 1)) < 0.5
    return np.where(solved, 500, rng.normal(200, 50, (number, 1)))


@pytest.mark.parametrize("kind", ["skewed", "bimodal"])
@pytest.mark.parametrize("sizes", [(5, 5), (3, 5)])
def test_equal_agents_seldom_differ(kind, sizes):
    """The bootstrap interval, which was used before, finds 10 and 11 %."""
    rng = np.random.default_rng(5)
    pairs = ([draw(kind, rng, n) for n in sizes] for _ in range(300))
    assert np.mean([rank_tests.p_value(*each) <= 0.05 for each in pairs]) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "skewed", "bimodal"])
@pytest.mark.parametrize(
    "sizes", [*((n, n) for n in range(2, 11)), (3, 5), (3, 10), (4, 8), (2, 10)]
)
def test_equal_agents_seldom_differ_for_any_number_of_runs(kind, sizes):
    """Three standard deviations of a share of 2,000 are 1.5 %."""
    rng = np.random.default_rng(6)
    pairs = ([draw(kind, rng, n) for n in sizes] for _ in range(2000))
    found = [rank_tests.p_value(*each, num_assignments=2000) <= 0.05 for each in pairs]
    assert np.mean(found) <= 0.05 + 0.015


def test_the_interval_holds_one_half_unless_the_exact_test_finds_a_difference():
    """All numbers of wins of 4 and 4, and of 3 and 6 runs, without equal scores."""
    for m, n in ((4, 4), (3, 6)):
        y = np.arange(n) + 0.5
        for whole, rest in (divmod(wins, n) for wins in range(m * n + 1)):
            x = ([n] * whole + [rest] + [0] * m)[:m]
            found = rank_tests.improvement(column(*x), column(*y))
            if found.p_value > 0.05:
                assert found.lower <= 0.5 <= found.upper


@pytest.mark.parametrize("number", [3, 5])
@pytest.mark.parametrize("probability", [0.5, 0.86, 0.95])
def test_the_interval_of_few_runs_holds_the_true_probability(number, probability):
    """Normal scores. The bootstrap interval holds 0.95 in 26 and 48 % of the cases."""
    rng = np.random.default_rng(2)
    shift = np.sqrt(2) * stats.norm.ppf(probability)
    held = []
    for _ in range(100):
        x, y = rng.normal(shift, 1, (number, 1)), rng.normal(0, 1, (number, 1))
        found = rank_tests.improvement(x, y)
        held.append(found.lower <= probability <= found.upper)
    assert np.mean(held) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 100)


def test_a_worked_interval():
    """Its ends solve (p - U)^2 = (z s(p) + half a step)^2; here U = 3/4 and m = n = 4.

    At 1/2 the variance is (m + n + 1) / (12 m n) = 9 / 192.
    """
    x, y = column(5, 6, 7, np.nan), column(1, 2, 3, 4)
    found = rank_tests.improvement(x, y)
    assert found.value == 0.75
    for end in (found.lower, found.upper):
        slope = (1 - end) / (2 - end) + end / (1 + end)
        variance = end * (1 - end) * (1 + 3 * slope) / 16
        assert abs(end - 0.75) == pytest.approx(1 / 32 + 1.959964 * variance**0.5)
    assert rank_tests._variance(0.5, [(4, 4)]) == pytest.approx(9 / 192)
    # Twice as many tasks, half of the variance.
    assert rank_tests._variance(0.5, [(4, 4)] * 2) == pytest.approx(9 / 384)


def test_a_complete_order_leaves_a_width():
    """The exact test tells 4 and 4 such runs apart, and not 3 and 3."""
    found = rank_tests.improvement(column(5, 6, 7, 8), column(1, 2, 3, 4))
    assert (found.value, found.upper) == (1, 1)
    assert 0.5 < found.lower < 0.6
    assert found.p_value == pytest.approx(2 / 70)
    found = rank_tests.improvement(column(5, 6, 7), column(1, 2, 3))
    assert found.lower < 0.5
    assert not statistics.is_enough(3, 3)
