import pytest

from tfrl.train import interval_trigger


def make(interval, start=0):
    calls = []
    trigger = interval_trigger.IntervalTrigger(
        interval, lambda: calls.append(True), start
    )

    def fired_at(values, **kwargs):
        fired = []
        for value in values:
            before = len(calls)
            trigger(value, **kwargs)
            fired += [value] * (len(calls) - before)
        return fired

    return trigger, fired_at


def test_it_counts_from_the_value_at_which_it_fired():
    _, fired_at = make(10)
    assert fired_at([9, 18, 27, 28, 36, 38]) == [18, 28, 38]


def test_it_counts_from_start():
    _, fired_at = make(10, start=5)
    assert fired_at([10, 14, 15, 24, 25]) == [15, 25]


def test_force_fires_early_but_not_twice_at_one_value():
    _, fired_at = make(10)
    assert fired_at([3, 3, 4], force_trigger=True) == [3, 4]
    assert fired_at([13, 14]) == [14]


@pytest.mark.parametrize("interval", [0, -1])
def test_without_an_interval_it_never_fires(interval):
    _, fired_at = make(interval)
    assert fired_at([1, 100], force_trigger=True) == []


def test_reset_and_set_start_move_the_start():
    trigger, fired_at = make(10, start=5)
    trigger.set_start(100)
    assert fired_at([109, 110]) == [110]
    trigger.reset()
    assert fired_at([14, 15]) == [15]


def test_the_result_of_a_function_is_refused():
    with pytest.raises(TypeError, match="fn: got 3, expected a function"):
        interval_trigger.IntervalTrigger(1, 3)
