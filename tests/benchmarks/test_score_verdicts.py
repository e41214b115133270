"""Means of rows with their intervals, and the verdicts beside references."""

import dataclasses

import numpy as np
import pytest

from benchmarks import published, score_curves, score_verdicts

REFERENCE = published.Figure(
    "rl-zoo3", "SAC", "Pendulum-v1", 20_000, -157.0, 1, "final", "greedy"
)


def row(seed, value):
    names = {"agent": "SAC", "preset": "sac", "config_hash": "abc"}
    return {**names, "seed": str(seed), "return": value}


def found_of(*returns, rounding=0.0):
    return score_verdicts.Outcome(returns, rounding, True)


def test_rows_without_final_returns_have_the_chance_of_seeds_and_the_rounding():
    found = score_verdicts.outcome([row(0, "-1.6"), row(1, "-1.6")], {})
    assert not found.has_own_starts
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
    assert found.has_own_starts
    assert found.returns == (-1.5, -1.25)
    ends = -1.375 + 12.7062 * np.array([-1, 1]) / 8
    np.testing.assert_allclose(found.interval, ends, rtol=1e-5)
    # One run without them, and the row is as the old ones.
    curves[score_curves.key_of(rows[1])] = score_curves.Curve(evaluations, evaluations)
    assert not score_verdicts.outcome(rows, curves).has_own_starts


def test_a_single_run_has_no_interval():
    assert np.isnan(found_of(-150.0).interval).all()


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        # Within 1 % of -157, which is 1.57, is level.
        ((-154.0, -154.1, -154.2), "ahead"),
        ((-155.4, -155.5, -155.6), "level"),
        ((-158.4, -158.5, -158.6), "level"),
        ((-159.0, -159.1, -159.2), "behind"),
        ((-140.0, -150.0, -160.0), "level"),
        ((-100.0, -100.1), "none: 2 seeds"),
        ((-100.0,), "none: 1 seed"),
    ],
)
def test_a_verdict_takes_the_whole_interval_and_three_seeds(returns, verdict):
    assert score_verdicts.verdict(found_of(*returns), REFERENCE) == verdict


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
