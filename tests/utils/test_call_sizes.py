"""Calls of about half a second, from measured durations."""

from tfrl.utils import call_sizes


def sizes_of(seconds_per_step, total, first=1):
    """The sizes of all calls of a computation whose steps take so long."""
    sizes, done, chosen = call_sizes.CallSizes(first), 0, []
    while done < total:
        chosen.append(sizes.choose(total - done))
        sizes.measured(chosen[-1], chosen[-1] * seconds_per_step)
        done += chosen[-1]
    return chosen


def test_calls_grow_to_half_a_second():
    assert sizes_of(1e-4, 21_111) == [1, 10, 100, 1_000, 5_000, 5_000, 5_000, 5_000]


def test_a_step_that_takes_long_is_a_call():
    assert sizes_of(2.0, 3) == [1, 1, 1]
    assert sizes_of(2.0, 3, first=2) == [2, 1]


def test_a_rest_joins_the_last_call():
    assert sizes_of(0.01, 111 + 70) == [1, 10, 50, 50, 70]


def test_what_is_known_to_be_short_is_one_call():
    sizes = call_sizes.CallSizes()
    sizes.measured(100, 0.01)
    assert sizes.choose(1_000) == 1_000
    # By its duration too, if the steps do not become ten times as long.
    sizes.measured(1, 1e-4)
    assert sizes.choose(400) == 400
    assert sizes.choose(5_000) == 10


def test_nothing_remains():
    sizes = call_sizes.CallSizes()
    assert sizes.choose(0) == 0
    sizes.measured(10, 0.1)
    assert sizes.choose(0) == 0


def test_a_clock_that_stands_still_is_no_error():
    sizes = call_sizes.CallSizes()
    sizes.measured(1, 0.0)
    assert sizes.choose(5) == 5
