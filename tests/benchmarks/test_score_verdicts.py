"""Means of rows with their intervals, and the verdicts beside references."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

from benchmarks import published, score_curves, score_verdicts

REFERENCE = published.Figure(
    "rl-zoo3", "SAC", "Pendulum-v1", 20_000, -157.0, 1, "final", "greedy"
)
SIMULATIONS = 20_000
# Runs of ours and of the reference.
SIZES = [
    *((n, 1) for n in (3, 4, 5, 7, 10, 20, 32)),
    *((3, 3), (3, 5), (5, 5), (32, 5), (3, 10), (5, 10), (10, 10), (10, 3)),
]
DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape),
    # As returns of CartPole: half of the runs reach the limit.
    "bounded": lambda rng, shape: 500 - np.maximum(rng.normal(0, 50, shape), 0),
}


def row(seed, value):
    names = {"agent": "SAC", "preset": "sac", "config_hash": "abc"}
    return {**names, "seed": str(seed), "return": value, "episodes": "50"}


def found_of(*returns, rounding=0.0, shared_starts=0):
    return score_verdicts.Outcome(returns, rounding, shared_starts)


def rate_of_verdicts(draw, n, m, gap=0.0):
    """Draws runs of two agents whose means differ; returns how often that is said."""
    rng = np.random.default_rng([871, n, m])
    ours, theirs = draw(rng, (SIMULATIONS, n)) + gap, draw(rng, (SIMULATIONS, m))
    deviation = theirs.std(axis=1, ddof=1) if m > 1 else None
    reference = score_verdicts.Reference(theirs.mean(axis=1), m, deviation)
    sides = score_verdicts.sides(ours, reference)
    assert set(np.unique(sides)) <= {-1, 0, 1}
    return np.mean(sides != 0) if gap == 0 else np.mean(sides == 1)


def test_rows_without_final_returns_have_the_chance_of_seeds_and_the_rounding():
    found = score_verdicts.outcome([row(0, "-1.6"), row(1, "-1.6")], {})
    assert found.shared_starts == 50
    np.testing.assert_allclose(found.interval, [-1.65, -1.55])
    assert found.mean == -1.6


def test_final_returns_give_exact_means_of_starts_that_differ():
    """The starts' chance is in the spread of the runs' means."""
    rows = [row(seed, "-1.6") for seed in range(2)]
    finals = ([-1.0, -2.0, -1.5], [-1.0, -1.25, -1.5])
    evaluations = np.zeros(1)
    curves = {
        score_curves.key_of(each): score_curves.Curve(
            evaluations, evaluations, np.array(own)
        )
        for each, own in zip(rows, finals, strict=True)
    }
    found = score_verdicts.outcome(rows, curves)
    assert found.shared_starts == 0
    assert found.returns == (-1.5, -1.25)
    ends = -1.375 + 12.7062 * np.array([-1, 1]) / 8
    np.testing.assert_allclose(found.interval, ends, rtol=1e-5)
    # One run without them, and the row is as the old ones.
    curves[score_curves.key_of(rows[1])] = score_curves.Curve(evaluations, evaluations)
    assert score_verdicts.outcome(rows, curves).shared_starts == 50


def test_a_single_run_has_no_interval():
    assert np.isnan(found_of(-150.0).interval).all()


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_equal_agents_differ_in_one_of_twenty_comparisons_at_most(kind, n, m):
    assert rate_of_verdicts(DISTRIBUTIONS[kind], n, m) <= 0.05


def test_agents_that_deviate_differently_but_return_the_same_are_level():
    for ratio in (0.2, 5.0):
        rng = np.random.default_rng(872)
        ours = rng.normal(size=(SIMULATIONS, 32))
        theirs = ratio * rng.normal(size=(SIMULATIONS, 5))
        reference = score_verdicts.Reference(
            theirs.mean(axis=1), 5, theirs.std(axis=1, ddof=1)
        )
        # A bit above the level at most, where the pooled error alone makes it 0.43.
        assert np.mean(score_verdicts.sides(ours, reference) != 0) <= 0.055


def test_rare_failures_of_the_reference_are_no_difference():
    """Five runs at the limit are usual if one run in ten fails; so is no deviation."""

    def draw(rng, shape):
        return 500.0 - 200 * (rng.random(shape) < 0.1)

    for n, m in ((3, 1), (32, 1), (32, 5), (5, 5)):
        assert rate_of_verdicts(draw, n, m) <= 0.05


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_ten_runs_each_find_a_difference_of_two_deviations(kind):
    """The deviation of both distributions is 1."""
    assert rate_of_verdicts(DISTRIBUTIONS[kind], 10, 10, gap=2.0) >= 0.8


def test_the_interval_of_a_difference_is_that_of_the_t_tests():
    ours, theirs = [3.0, 5.0, 4.5, 7.0], [1.0, 9.0, 2.0]
    own, value, spread = np.mean(ours), np.mean(theirs), np.std(theirs, ddof=1)

    def interval_of(reference):
        return score_verdicts.difference(ours, reference)

    found = interval_of(score_verdicts.Reference(value, 3, spread))
    test = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    error = (own - value) / test.statistic
    reach = scipy.stats.t.ppf(0.975, math.floor(test.df)) * error
    np.testing.assert_allclose(found, (own - value - reach, own - value + reach), 1e-5)
    # Runs that deviate less than ours by chance, as at a bound: the pooled error.
    found = interval_of(score_verdicts.Reference(value, 3, 0.0))
    error = np.sqrt(3 * np.var(ours, ddof=1) / 5 * (1 / 4 + 1 / 3))
    reach = scipy.stats.t.ppf(0.975, 3) * error
    np.testing.assert_allclose(found, (own - value - reach, own - value + reach), 1e-5)
    # One run, and an exact mean.
    for runs, share in ((1, 5 / 4), (math.inf, 1 / 4)):
        error = np.std(ours, ddof=1) * np.sqrt(share)
        reach = scipy.stats.t.ppf(0.995, 3) * error
        found = interval_of(score_verdicts.Reference(value, runs))
        ends = own - value - reach, own - value + reach
        np.testing.assert_allclose(found, ends, 1e-5)


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        # Within 1 % of -157, which is 1.57, is level; 99 % of t with 2 degrees of
        # freedom are within 9.925, times 0.1 and the root of 4 / 3.
        ((-154.1, -154.2, -154.3), "ahead"),
        ((-154.4, -154.5, -154.6), "level"),
        ((-159.4, -159.5, -159.6), "level"),
        ((-159.7, -159.8, -159.9), "behind"),
        ((-140.0, -150.0, -160.0), "level"),
        ((-100.0, -100.1), "none: 2 seeds"),
        ((-100.0,), "none: 1 seed"),
        ((-100.0, -100.0, -100.0), "none: equal returns"),
        ((-156.0, -156.0, -156.0), "level"),
    ],
)
def test_a_verdict_takes_the_whole_interval_and_three_seeds(returns, verdict):
    assert score_verdicts.verdict(found_of(*returns), REFERENCE) == verdict


def test_a_single_run_among_ours_is_level():
    ours = [1.0] * 31 + [-9.0]
    for value, side in ((-8.9, 0), (-9.1, 1)):
        reference = score_verdicts.Reference(value, 1)
        assert score_verdicts.sides(ours, reference) == side


def test_the_starts_of_a_single_run_add_to_its_error():
    """88.7 over 750 episodes and over our own 50, if these are shared."""
    reference = dataclasses.replace(REFERENCE, spread=88.7, episodes=750)
    for starts, error in ((0, 88.7**2 / 750), (50, 88.7**2 / 750 + 88.7**2 / 50)):
        found = score_verdicts.beside(found_of(-150, shared_starts=starts), reference)
        np.testing.assert_allclose(found.error, np.sqrt(error))
        assert found.deviation is None
    close = (-147.0, -148.0, -148.5, -147.6, -148.2, -147.9)
    assert score_verdicts.verdict(found_of(*close), REFERENCE) == "ahead"
    assert score_verdicts.verdict(found_of(*close), reference) == "level"


def test_the_data_is_exact_and_several_runs_have_their_own_deviation():
    found = found_of(-150.0)
    data = dataclasses.replace(REFERENCE, kind="data", spread=300.0)
    assert score_verdicts.beside(found, data) == score_verdicts.Reference(
        -157.0, math.inf
    )
    five = dataclasses.replace(REFERENCE, runs=5, spread=4.0)
    assert score_verdicts.beside(found, five) == score_verdicts.Reference(-157, 5, 4.0)


def test_a_row_with_settings_of_another_source_gets_no_verdict():
    """CleanRL's settings beside rl-zoo3's figure; sb3-contrib trains with rl-zoo3's."""
    found = found_of(-100.0, -100.1, -100.2)
    for source, verdict in (
        ("CleanRL", "none: other settings"),
        ("sb3-contrib", "ahead"),
        ("rl-zoo3", "ahead"),
    ):
        own = dataclasses.replace(REFERENCE, source=source)
        assert score_verdicts.verdict(found, REFERENCE, own) == verdict


def test_the_page_says_how_far_apart_and_how_many_runs_both_are():
    found = found_of(-154.1, -154.2, -154.3)
    text = score_verdicts.text(found, REFERENCE, None)
    assert text == "ahead (+1.7 to +3.9; 3 and 1 runs)"
    rounded = dataclasses.replace(found, rounding=0.1)
    text = score_verdicts.text(rounded, REFERENCE, None)
    assert text == "level (+1.6 to +4.0; 3 and 1 runs)"
    data = dataclasses.replace(REFERENCE, kind="data")
    assert score_verdicts.text(found, data, None).endswith("; 3 runs)")
    assert score_verdicts.text(found_of(-1.0), REFERENCE, None) == "none: 1 seed"
    assert score_verdicts.text(found, None, None) == ""


def test_equal_returns_of_few_seeds_are_no_certainty_beyond_their_rounding():
    """-1.6 three times, rounded, beside -1.66: it may have been -1.65."""
    reference = dataclasses.replace(REFERENCE, value=-1.659)
    found = found_of(-1.6, -1.6, -1.6, rounding=0.05)
    assert score_verdicts.verdict(found, reference) == "level"


def test_best_evaluations_and_exploring_returns_give_no_verdict():
    found = found_of(-100.0, -100.1, -100.2)
    best = dataclasses.replace(REFERENCE, kind="best")
    assert score_verdicts.verdict(found, best) == "none: best evaluations"
    training = dataclasses.replace(REFERENCE, kind="training", actions="exploring")
    assert score_verdicts.verdict(found, training) == "none: training returns"
    assert score_verdicts.verdict(found, None) == ""


def test_the_page_counts_the_verdicts():
    verdicts = ["ahead", "level", "level", "none: 1 seed", "", "behind", ""]
    assert score_verdicts.count(verdicts) == (
        "Of 7 rows, 1 are ahead, 2 level and 1 behind; 1 have a reference that gives "
        "no verdict, and 2 have none."
    )
