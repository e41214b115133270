import time

from tfrl.replay_service.transport import deadlines


def test_a_deadline_is_so_many_seconds_away():
    left = deadlines.remaining(deadlines.after(100.0))
    assert 99.0 < left <= 100.0


def test_nothing_remains_after_a_deadline():
    assert deadlines.remaining(time.monotonic() - 5.0) == 0.0


def test_no_timeout_is_no_deadline():
    assert deadlines.after(None) is None
    assert deadlines.remaining(None) is None
