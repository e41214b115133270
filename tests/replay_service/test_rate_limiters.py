"""Limiters: Reverb's checks, and its arithmetic one by one and in closed form."""

import itertools
import json
import logging
import math
import random
import sys

import pytest

from tfrl.replay_service import rate_limiters
from tfrl.replay_service.rate_limiters import Counts, RateLimiter


def numbers(limiter):
    return (
        limiter.samples_per_insert,
        limiter.min_size_to_sample,
        limiter.min_diff,
        limiter.max_diff,
    )


def test_classes_choose_the_four_numbers():
    largest = sys.float_info.max
    ratio = rate_limiters.SampleToInsertRatio
    assert numbers(rate_limiters.MinSize(3)) == (1.0, 3, -largest, largest)
    assert numbers(rate_limiters.Queue(5)) == (1.0, 1, 0.0, 5.0)
    assert numbers(rate_limiters.Stack(5)) == (1.0, 1, 0.0, 5.0)
    assert numbers(ratio(4, 10, 8)) == (4.0, 10, 32.0, 48.0)
    assert numbers(ratio(4, 10, (30, 45.5))) == (4.0, 10, 30.0, 45.5)


@pytest.mark.parametrize(
    "limiter",
    [
        rate_limiters.MinSize(7),
        rate_limiters.Queue(5),
        rate_limiters.SampleToInsertRatio(1 / 3, 10, math.inf),
        RateLimiter(0.1, 1, -math.inf, sys.float_info.max),
    ],
    ids=repr,
)
def test_configuration_survives_strict_json(limiter):
    text = json.dumps(limiter.to_config(), allow_nan=False)
    restored = rate_limiters.from_config(json.loads(text))
    assert numbers(restored) == numbers(limiter)


def test_incomplete_configuration_is_refused():
    with pytest.raises(ValueError, match=r"keys \['max_diff'\], expected \['max_diff'"):
        rate_limiters.from_config({"max_diff": 3.0})


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_minimum_size_must_be_a_positive_integer(size):
    pattern = rf"min_size_to_sample \({size}\) must be a positive integer"
    with pytest.raises(ValueError, match=pattern):
        rate_limiters.MinSize(size)
    with pytest.raises(ValueError, match=pattern):
        rate_limiters.SampleToInsertRatio(1.0, size, 5.0)


@pytest.mark.parametrize("ratio", [0, -1.0, math.nan, math.inf])
def test_ratio_must_be_positive(ratio):
    with pytest.raises(ValueError, match=r"samples_per_insert \(.*\) must be > 0"):
        rate_limiters.SampleToInsertRatio(ratio, 1, 5.0)
    with pytest.raises(ValueError, match=r"samples_per_insert \(.*\) must be > 0"):
        RateLimiter(ratio, 1, 0.0, 5.0)


def test_differences_must_be_numbers():
    with pytest.raises(ValueError, match=r"min_diff nan and max_diff 5\.0"):
        RateLimiter(1.0, 1, math.nan, 5.0)


@pytest.mark.parametrize("buffer", [3.9, (10.0, 17.9), math.nan])
def test_error_buffer_must_leave_room(buffer):
    with pytest.raises(ValueError, match=r"must be >= max\(1.0, samples_per_insert\)"):
        rate_limiters.SampleToInsertRatio(4.0, 4, buffer)


def test_error_buffer_must_not_be_above_the_first_sample():
    with pytest.raises(ValueError, match=r"\[50, 60\].*is above.*\(40\).*deadlock"):
        rate_limiters.SampleToInsertRatio(4, 10, (50, 60))


def test_error_buffer_below_the_first_sample_warns(caplog):
    with caplog.at_level(logging.WARNING, logger="tfrl.replay_service"):
        rate_limiters.SampleToInsertRatio(4, 10, (5, 30))
    assert "covered by error_buffer is below" in caplog.text


def test_sample_to_insert_ratio_stops_at_twelve_inserts_then_after_twenty_samples():
    limiter = rate_limiters.SampleToInsertRatio(4, 10, 8)
    assert rate_limiters.num_inserts(limiter, Counts(), 100) == 12
    assert rate_limiters.num_samples(limiter, Counts(9), 100) == 0
    assert rate_limiters.num_samples(limiter, Counts(12), 100) == 16
    # A thirteenth insert goes in after four samples, and lets four more through.
    assert not rate_limiters.can_insert(limiter, Counts(12, 3))
    assert rate_limiters.can_insert(limiter, Counts(12, 4))
    assert rate_limiters.num_samples(limiter, Counts(13, 4), 100) == 16
    assert rate_limiters.num_samples(limiter, Counts(13, 20), 100) == 0


def test_closed_forms_are_what_one_by_one_gives():
    source = random.Random(0)
    for _ in range(3000):
        low = source.uniform(-10, 20)
        limiter = RateLimiter(
            samples_per_insert=source.choice([0.1, 0.5, 1, 3, 1 / 3, source.random()]),
            min_size_to_sample=source.randint(1, 12),
            min_diff=source.choice([low, round(low), -math.inf, -sys.float_info.max]),
            max_diff=source.choice([low + 9.5, round(low) + 9, math.inf]),
        )
        inserts = source.randint(0, 40)
        counts = Counts(inserts, source.randint(0, 60), source.randint(0, inserts))
        n = source.randint(0, 30)
        allowed = 0
        while allowed < n and rate_limiters.can_sample(
            limiter, counts._replace(samples=counts.samples + allowed)
        ):
            allowed += 1
        assert rate_limiters.num_samples(limiter, counts, n) == allowed
        allowed = 0
        while allowed < n and rate_limiters.can_insert(
            limiter, counts._replace(inserts=counts.inserts + allowed)
        ):
            allowed += 1
        assert rate_limiters.num_inserts(limiter, counts, n) == allowed


@pytest.mark.parametrize(
    ("limiter", "max_size", "max_times_sampled"),
    [
        (rate_limiters.MinSize(5), 5, 0),
        (rate_limiters.Queue(1), 1, 1),
        (rate_limiters.Queue(1), 1, 0),
        (rate_limiters.SampleToInsertRatio(4, 10, 8), 10, 0),
        (rate_limiters.SampleToInsertRatio(4, 10, (5, 30)), 10, 0),
        (rate_limiters.SampleToInsertRatio(0.1, 10, math.inf), 10, 0),
        # An item that goes with its sample makes room for an insert.
        (rate_limiters.Queue(0), 1, 1),
        (RateLimiter(4.0, 1, 0.0, 1.0), 1, 1),
        # Inserts beyond the minimum make up for what the first ones lack.
        (RateLimiter(0.25, 1, 0.0, 1.0), 1, 0),
    ],
)
def test_limiters_that_let_a_table_run_pass(limiter, max_size, max_times_sampled):
    rate_limiters.check_satisfiable(limiter, max_size, max_times_sampled)


def test_minimum_above_the_maximum_size_is_refused():
    with pytest.raises(ValueError, match="10, expected at most the table's max_si"):
        rate_limiters.check_satisfiable(rate_limiters.MinSize(10), 5)


@pytest.mark.parametrize(
    "limiter",
    [
        RateLimiter(1.0, 1, 5.0, 5.5),
        RateLimiter(0.25, 1, 0.0, 0.9),
        RateLimiter(1.0, 1, math.inf, math.inf),
        RateLimiter(1.0, 3, 2.5, -math.inf),
    ],
    ids=repr,
)
def test_limiters_that_never_let_a_sample_through_are_refused(limiter):
    with pytest.raises(ValueError, match=r"got min_diff .* nothing could ever be"):
        rate_limiters.check_satisfiable(limiter, 10, 1)


@pytest.mark.parametrize(
    "limiter", [RateLimiter(4.0, 3, 0.0, 3.5), rate_limiters.Queue(0)], ids=repr
)
def test_limiters_that_stop_both_sides_for_good_are_refused(limiter):
    with pytest.raises(
        ValueError, match=r"got max_diff - min_diff .*both stop forever"
    ):
        rate_limiters.check_satisfiable(limiter, 10)


@pytest.mark.parametrize("limit", [0, 1])
def test_limiters_are_refused_if_no_order_of_operations_goes_on(limit):
    for ratio, minimum, low, width in itertools.product(
        (0.5, 0.75, 1.0, 2.0), (1, 2), (-1.0, 0.0, 1.5), (0.0, 0.5, 1.0, 1.5, 2.0)
    ):
        limiter = RateLimiter(ratio, minimum, low, low + width)
        try:
            rate_limiters.check_satisfiable(limiter, 2, limit)
            accepted = True
        except ValueError:
            accepted = False
        # Where samples delete, some are accepted that stop after all.
        expected = accepted if limit == 0 else (accepted and _goes_on(limiter, limit))
        assert _goes_on(limiter, limit) == expected, limiter


def _goes_on(limiter, limit):
    """Returns whether some order of operations reaches 40 inserts and 30 samples.

    The table holds two items, which go after `limit` samples, 0 or 1.
    """
    seen = set()
    open_states = [Counts()]
    while open_states:
        counts = open_states.pop()
        if counts.inserts >= 40 and counts.samples >= 30:
            return True
        if counts in seen or max(counts) > 120:
            continue
        seen.add(counts)
        full = counts.inserts - counts.deletes == 2
        if rate_limiters.can_insert(limiter, counts):
            open_states.append(
                Counts(counts.inserts + 1, counts.samples, counts.deletes + full)
            )
        if rate_limiters.can_sample(limiter, counts):
            open_states.append(
                Counts(counts.inserts, counts.samples + 1, counts.deletes + limit)
            )
    return False
