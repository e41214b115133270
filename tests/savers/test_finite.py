import numpy as np
import pytest
import tensorflow as tf

from tfrl.savers import finite


@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_found(kind, number):
    variable = tf.Variable(tf.zeros([2, 3], kind))
    assert finite.is_finite(variable)
    variable[1, 2].assign(tf.cast(number, kind))
    assert not finite.is_finite(variable)
    assert not finite.all_finite([tf.Variable(1.0), variable, tf.Variable(2)])


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_no_optimization_of_a_graph_loses_it(number, jit_compile):
    variables = [tf.Variable([1.0, -3e38]), tf.Variable([[0.0], [3e38]])]
    all_finite = tf.function(
        lambda: finite.all_finite(variables), autograph=False, jit_compile=jit_compile
    )
    assert all_finite()
    variables[1][1, 0].assign(number)
    assert not all_finite()


@pytest.mark.parametrize("value", [3, True, "text", 1j])
def test_other_kinds_count_as_finite(value):
    variable = tf.Variable(value)
    assert not finite.can_be_checked(variable)
    assert finite.is_finite(variable)
    assert finite.all_finite([variable])


def test_no_variables_are_finite():
    assert finite.all_finite([])
