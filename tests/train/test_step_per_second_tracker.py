import tensorflow as tf

from tfrl.train import step_per_second_tracker


def test_the_rate_is_that_since_the_restart(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(step_per_second_tracker.time, "perf_counter", lambda: now[0])
    step = tf.Variable(7, dtype=tf.int64)
    tracker = step_per_second_tracker.StepPerSecondTracker(step)
    assert tracker.steps_per_second() == 0.0  # No time has passed.
    step.assign_add(30)
    now[0] += 4.0
    assert tracker.steps_per_second() == 7.5
    tracker.restart()
    step.assign_add(1)
    now[0] += 0.5
    assert tracker.steps_per_second() == 2.0
