"""Numbers that change in the course of training."""

import keras
import pytest
import tensorflow as tf

from tfrl.utils.optimization import schedules


def decay():
    return keras.optimizers.schedules.PolynomialDecay(1.0, 10, 0.0)


@pytest.mark.parametrize("value", [0.3, tf.constant(0.3), tf.Variable(0.3), list, None])
def test_all_but_schedules_stay_what_they_are(value):
    assert schedules.follow("epsilon", value, None) is value


def test_a_schedule_follows_its_step_in_one_trace():
    step = tf.Variable(0, dtype=tf.int64)
    value = schedules.follow("epsilon", decay(), step)
    read = tf.function(lambda: schedules.current_value(value))
    for expected in (1.0, 0.9, 0.8):
        assert float(read()) == pytest.approx(expected, rel=1e-6)
        step.assign_add(1)
    assert read.experimental_get_tracing_count() == 1


def test_a_schedule_without_a_step_is_an_error():
    with pytest.raises(ValueError, match=r"step: got None with the schedule Polyn"):
        schedules.follow("epsilon", decay(), None)


def test_the_current_value_of_a_callable_is_what_it_returns():
    variable = tf.Variable(0.25)
    assert schedules.current_value(lambda: variable) is variable
    assert schedules.current_value(variable) is variable
    assert schedules.current_value(0.5) == 0.5
