import pytest

from tfrl.system import throttle


def test_it_says_yes_until_the_first_restart_and_then_every_time_delta(monkeypatch):
    limited = throttle.Throttle(5)
    answers = []
    for second in (1000, 1001, 1004.9, 1006, 1011):
        monkeypatch.setattr("time.monotonic", lambda now=second: now)
        answers.append(limited.is_due())
        if second >= 1001 and answers[-1]:
            limited.restart()
    assert answers == [True, True, False, True, True]


def test_a_negative_time_is_refused():
    with pytest.raises(ValueError, match="time_delta: got -1"):
        throttle.Throttle(-1)
