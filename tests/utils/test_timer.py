import contextlib

import pytest

from tfrl.utils import timer as timer_lib


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [100.0]
    monkeypatch.setattr(timer_lib.time, "perf_counter", lambda: now[0])
    return now


def test_adds_up_blocks_and_not_the_time_between(clock):
    timer = timer_lib.Timer()
    with timer:
        clock[0] += 2
    clock[0] += 50
    timer.start()
    clock[0] += 3
    assert timer.value() == 2
    timer.stop()
    assert timer.value() == 5


def test_reset_goes_back_to_zero(clock):
    timer = timer_lib.Timer()
    with timer as entered:
        clock[0] += 2
    assert entered is timer
    timer.reset()
    assert timer.value() == 0


def test_a_block_that_raises_counts(clock):
    timer = timer_lib.Timer()
    with contextlib.suppress(KeyError), timer:
        clock[0] += 1
        raise KeyError
    assert timer.value() == 1


def test_stop_without_start_is_an_error():
    with pytest.raises(RuntimeError, match=r"Timer.stop: .* call start\(\)"):
        timer_lib.Timer().stop()
