"""Losses of deterministic actors and targets of TD3, worked by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses


def gradient_of_the_policy(clipping):
    """The gradient of a loss for the actions (k, 3k), with Q = 2 a_0 - a_1 + a_1^2."""
    k = tf.Variable(0.5)
    with tf.GradientTape() as outer:
        action = tf.stack([k, 3 * k])[tf.newaxis]
        with tf.GradientTape() as inner:
            inner.watch(action)
            q = 2 * action[:, 0] - action[:, 1] + action[:, 1] ** 2
        loss = losses.deterministic_policy_gradient(
            q, action, inner.gradient(q, action), clipping
        )
    return loss.numpy(), outer.gradient(loss, k).numpy()


def test_the_gradient_of_the_policy_is_the_chain_rule():
    # a = (0.5, 1.5), so Q = 1.75 and dQ/da = (2, 2); da/dk = (1, 3).
    loss, gradient = gradient_of_the_policy(None)
    np.testing.assert_array_equal(loss, [-1.75])
    np.testing.assert_array_equal(gradient, -(2 + 3 * 2))


def test_clipping_changes_the_gradient_and_not_the_loss():
    loss, gradient = gradient_of_the_policy(0.5)
    np.testing.assert_array_equal(loss, [-1.75])
    np.testing.assert_array_equal(gradient, -(0.5 + 3 * 0.5))


@pytest.mark.parametrize(
    ("limit", "by_norm", "slopes"),
    [(None, False, [3.0, -4.0]), (1.0, False, [1.0, -1.0]), (2.5, True, [1.5, -2.0])],
)
def test_dpg_by_a_tape(limit, by_norm, slopes):
    """Q = 3 a_0 - 4 a_1, whose gradient has the norm 5."""
    actions = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as outer:
        a_max = tf.identity(actions)
        with tf.GradientTape() as tape:
            tape.watch(a_max)
            q_max = tf.linalg.matvec(a_max, [3.0, -4.0])
        loss = losses.dpg(q_max, a_max, tape, limit, by_norm)
    np.testing.assert_allclose(loss, [0.5 * np.square(slopes).sum()], rtol=1e-6)
    np.testing.assert_allclose(
        outer.gradient(loss, actions), [np.negative(slopes)], rtol=1e-6
    )


def test_dpg_takes_a_column_of_values():
    def of(shape):
        with tf.GradientTape() as tape:
            a_max = tf.constant([[1.0, 2.0], [0.5, 0.0]])
            tape.watch(a_max)
            q_max = tf.reshape(tf.linalg.matvec(a_max, [3.0, -4.0]), shape)
        return losses.dpg(q_max, a_max, tape)

    np.testing.assert_array_equal(of([2, 1]), of([2]))
    with pytest.raises(ValueError, match="q_max: got rank 2"):
        of([1, 2])


def test_dpg_refuses_values_without_actions_and_no_clipping_at_all():
    with tf.GradientTape() as tape:
        a_max = tf.ones([1, 2])
    with pytest.raises(ValueError, match="do not depend on a_max"):
        losses.dpg(tf.ones([1]), a_max, tape)
    with pytest.raises(ValueError, match="dqda_clipping: got 0"):
        losses.dpg(tf.ones([1]), a_max, tape, dqda_clipping=0)


def test_norms_are_those_of_each_action_of_each_example():
    a, b = tf.Variable(tf.ones([2, 5, 3])), tf.Variable(tf.ones([2, 5]))
    with tf.GradientTape() as tape:
        loss = losses.deterministic_policy_gradient(
            tf.ones([2, 5]),
            [tf.identity(a), tf.identity(b)],
            [tf.fill([2, 5, 3], 2.0), tf.fill([2, 5], 0.5)],
            dqda_clipping=1.0,
            clip_norm=True,
        )
    gradients = tape.gradient(loss, [a, b])
    np.testing.assert_allclose(gradients[0], np.full([2, 5, 3], -(3**-0.5)), rtol=1e-6)
    np.testing.assert_allclose(gradients[1], np.full([2, 5], -0.5), rtol=1e-6)


def test_nests_of_actions_in_sequences():
    a, b = tf.Variable(tf.ones([2, 5, 3])), tf.Variable(tf.ones([2, 5]))
    with tf.GradientTape() as tape:
        loss = losses.deterministic_policy_gradient(
            tf.ones([2, 5]),
            {"a": tf.identity(a), "b": tf.identity(b)},
            {"a": tf.fill([2, 5, 3], 2.0), "b": tf.fill([2, 5], 7.0)},
        )
    np.testing.assert_array_equal(loss, -np.ones([2, 5]))
    gradients = tape.gradient(loss, [a, b])
    np.testing.assert_array_equal(gradients[0], np.full([2, 5, 3], -2.0))
    np.testing.assert_array_equal(gradients[1], np.full([2, 5], -7.0))


def test_the_smallest_value_of_several_critics():
    values = [[1.0, 5.0, 3.0], [2.0, -1.0, 3.0], [0.0, 4.0, 9.0]]
    np.testing.assert_array_equal(losses.clipped_double_q(values), [0.0, -1.0, 3.0])
    with pytest.raises(ValueError, match="nothing is broadcast"):
        losses.clipped_double_q([[1.0], [1.0, 2.0]])


def test_smoothed_actions_stay_inside_asymmetric_bounds():
    action = [[0.0, 0.0], [0.9, -0.1], [0.0, 0.0], [0.95, 0.3]]
    noise = [[0.1, 0.1], [0.1, -0.3], [-0.9, 0.9], [9.0, -9.0]]
    smoothed = losses.smoothed_action(
        action, noise, [0.5, 0.25], [-1.0, -0.2], [1.0, 0.4]
    )
    np.testing.assert_allclose(
        smoothed, [[0.1, 0.1], [1.0, -0.2], [-0.5, 0.25], [1.0, 0.05]], atol=1e-6
    )
