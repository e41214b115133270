"""One-step temporal differences, worked by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses

R_T = [1.0, 2.0]
DISCOUNT_T = [0.5, 0.0]
Q_TM1 = [[1.0, 5.0], [2.0, 3.0]]
Q_T = [[4.0, 8.0], [7.0, 6.0]]


def test_td_error_ignores_the_next_value_at_a_termination():
    error = losses.td_error([3.0, 3.0], R_T, DISCOUNT_T, [10.0, 10.0])
    np.testing.assert_array_equal(error, [1 + 5 - 3, 2 - 3])


def test_double_q_learning_values_the_action_the_selector_chose():
    selector = [[9.0, 1.0], [0.0, 1.0]]
    error = losses.double_q_learning(Q_TM1, [1, 0], R_T, DISCOUNT_T, Q_T, selector)
    np.testing.assert_array_equal(error, [1 + 0.5 * 4 - 5, 2 - 2])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_action_value_picks_one_entry_whatever_the_others_are(dtype):
    q = tf.constant([[1.0, np.nan], [np.inf, 3.0]])
    with tf.GradientTape() as tape:
        tape.watch(q)
        values = losses.action_value(q, tf.constant([0, 1], dtype))
    np.testing.assert_array_equal(values, [1, 3])
    np.testing.assert_array_equal(tape.gradient(values, q), np.eye(2))


@pytest.mark.parametrize("outer", [[2], [2, 1], [1, 2]])
def test_action_value_of_several_numbers_an_action(outer):
    q = tf.reshape(tf.range(12.0), [*outer, 3, 2])
    picked = losses.action_value(q, tf.reshape([2, 0], outer))
    np.testing.assert_array_equal(tf.reshape(picked, [2, 2]), [[4, 5], [6, 7]])


def test_best_action_is_that_of_the_selector_if_there_is_one():
    np.testing.assert_array_equal(losses.best_action_value(Q_T), [8, 7])
    selector = [[9.0, 1.0], [0.0, 1.0]]
    np.testing.assert_array_equal(losses.best_action_value(Q_T, selector), [4, 6])


def test_a_discount_of_zero_removes_a_value_that_is_not_finite():
    target = losses.td_target(R_T, [0.0, 0.5], [np.nan, 4.0])
    np.testing.assert_array_equal(target, [1, 4])


def test_sequences_are_each_step_for_itself():
    def in_time(x):
        return tf.constant(x)[tf.newaxis]

    arguments = map(in_time, (Q_TM1, [1, 0], R_T, DISCOUNT_T, Q_T, Q_T))
    error = losses.double_q_learning(*arguments)
    np.testing.assert_array_equal(error, [[0, 0]])


def test_gradient_flows_into_the_prediction_alone():
    q_tm1, q_t, selector = (tf.constant(q) for q in (Q_TM1, Q_T, Q_T))
    with tf.GradientTape() as tape:
        tape.watch((q_tm1, q_t, selector))
        error = losses.double_q_learning(q_tm1, [1, 0], R_T, DISCOUNT_T, q_t, selector)
    gradients = tape.gradient(error, (q_tm1, q_t, selector))
    np.testing.assert_array_equal(gradients[0], [[0, -1], [-1, 0]])
    assert gradients[1:] == (None, None)


def test_nothing_is_broadcast():
    with pytest.raises(ValueError, match=r"v_t: got shape \(1,\), expected \(2,\) as"):
        losses.td_target(R_T, DISCOUNT_T, [1.0])
    with pytest.raises(
        ValueError, match=r"v_t: got rank 4 .* expected rank 1 or 2 or 3"
    ):
        losses.td_target(R_T, DISCOUNT_T, [[[[1.0]]]])
    with pytest.raises(ValueError, match=r"a: got shape \(1,\), expected \(2,\)"):
        losses.action_value(Q_T, [0])
    with pytest.raises(ValueError, match=r"q_t_selector: got shape \(1, 2\), expected"):
        losses.best_action_value(Q_T, Q_T[:1])


def test_the_largest_of_several_errors_keeps_its_sign():
    errors = [[1.0, -2.0, 0.5], [-3.0, 1.0, 0.5], [2.0, 1.5, 0.0]]
    np.testing.assert_array_equal(losses.largest_error(errors), [-3, -2, 0.5])
    with pytest.raises(ValueError, match="expected"):
        losses.largest_error([[1.0], [1.0, 2.0]])


def test_priorities_of_sequences():
    errors = np.array([[-2.0, 1.0, 0.0, 0.0], [0.5, 0.5, -0.5, 0.5]])
    # 0.9 * 2 + 0.1 * 3 / 4, and 0.5 in any mixture.
    np.testing.assert_allclose(losses.sequence_priorities(errors), [1.875, 0.5])
    np.testing.assert_allclose(losses.sequence_priorities(errors, eta=0.0), [0.75, 0.5])
    np.testing.assert_allclose(losses.sequence_priorities([-3.0, 2.0]), [3.0, 2.0])
