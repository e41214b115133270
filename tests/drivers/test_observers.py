"""What counts as an effect of code in a graph."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import variable_substitution
from tfrl.drivers import observers

variable = tf.Variable(1.0)

EFFECTS = {
    "assigns": lambda: variable.assign_add(1.0),
    "assigns in a function": tf.function(lambda: variable.assign(2.0)),
    "assigns in a branch": lambda: tf.cond(
        variable > 0, lambda: variable.assign(2.0), lambda: tf.constant(1.0)
    ),
    "calls Python": lambda: tf.numpy_function(np.sin, [1.0], tf.float32),
    "prints": lambda: tf.print("seen"),
    "asserts": lambda: tf.debugging.assert_positive(variable + 1),
}
NO_EFFECTS = {
    "nothing": lambda: None,
    "reads": lambda: variable + 1.0,
    "computes": lambda: tf.function(lambda: tf.constant(1) + 1)(),
    "runs Python in a function": tf.function(lambda: [].append(1)),
}


def traced(act):
    """Whether `act` has an effect on a function's graph."""
    found = []

    @tf.function(autograph=False)
    def trace():
        variable.assign(1.0)  # Effects before the mark do not count.
        before = observers.graph_mark()
        act()
        found.append(observers.added_effect_since(before))

    trace.get_concrete_function()
    return found[0]


@pytest.mark.parametrize("name", EFFECTS)
def test_has_an_effect(name):
    assert traced(EFFECTS[name])


@pytest.mark.parametrize("name", NO_EFFECTS)
def test_has_no_effect(name):
    assert not traced(NO_EFFECTS[name])


@pytest.mark.parametrize("assigns", [False, True])
def test_an_assignment_to_a_substituted_variable_is_an_effect(assigns):
    act = EFFECTS["assigns"] if assigns else NO_EFFECTS["reads"]

    def with_a_tensor():
        before = observers.graph_mark()
        act()
        assert observers.added_effect_since(before) == assigns

    @tf.function(autograph=False)
    def trace(value):
        with variable_substitution.substituted([variable], [value]):
            with_a_tensor()

    trace.get_concrete_function(tf.constant(1.0))
