"""Sums and shifts along time, against loops in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses

VALUES = np.array([[5.0, 6.0, 7.0], [1.0, -2.0, 0.5]], np.float32)


def future_sum(values, gamma, num_steps):
    batch, total = values.shape
    return [
        [
            sum(gamma**k * values[b, t + k] for k in range(min(num_steps, total - t)))
            for t in range(total)
        ]
        for b in range(batch)
    ]


@pytest.mark.parametrize("num_steps", [1, 2, 3, 10])
@pytest.mark.parametrize("gamma", [0.9, 1.0, 0.0])
def test_discounted_future_sum(num_steps, gamma):
    np.testing.assert_allclose(
        losses.discounted_future_sum(VALUES, gamma, num_steps),
        future_sum(VALUES, gamma, num_steps),
        rtol=1e-6,
    )


def test_values_after_an_episode_count_as_zero_whatever_they_are():
    values = VALUES.copy()
    values[1, 2] = np.nan
    sums = losses.discounted_future_sum_masked(values, 0.9, 3, [2, 1])
    # 5 + 0.9 * 6; then 6, and nothing.
    np.testing.assert_allclose(sums, [[10.4, 6, 0], [1, 0, 0]], rtol=1e-6)


def test_shift_values():
    shifted = losses.shift_values(VALUES, 0.5, 2, final_values=[8.0, 16.0])
    # g^2 v_2, then g^2 and g^1 times the final value.
    np.testing.assert_allclose(shifted, [[1.75, 2, 4], [0.125, 4, 8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("num_steps", "expected"),
    [(0, VALUES), (1, [[3, 3.5, 0], [-1, 0.25, 0]]), (9, np.zeros([2, 3]))],
)
def test_without_final_values_nothing_follows(num_steps, expected):
    np.testing.assert_allclose(
        losses.shift_values(VALUES, 0.5, num_steps), expected, rtol=1e-6
    )


def test_n_step_returns_are_a_sum_and_a_shift():
    gamma, num_steps, final = 0.9, 2, np.float32([3.0, 4.0])
    rewards, values = VALUES, VALUES[:, ::-1]
    returns = losses.discounted_future_sum(rewards, gamma, num_steps)
    returns += losses.shift_values(values, gamma, num_steps, final)
    bootstrapped = np.concatenate([values, final[:, np.newaxis]], axis=1)
    expected = [
        [
            sum(gamma**k * rewards[b, t + k] for k in range(min(num_steps, 3 - t)))
            + gamma ** min(num_steps, 3 - t) * bootstrapped[b, min(t + num_steps, 3)]
            for t in range(3)
        ]
        for b in range(2)
    ]
    np.testing.assert_allclose(returns, expected, rtol=1e-5, atol=1e-5)


def test_unknown_shapes_and_tensors_of_steps_trace_once():
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.float64),
            tf.TensorSpec([], tf.int32),
        ]
    )
    def both(values, num_steps):
        return (
            losses.discounted_future_sum(values, 0.9, num_steps),
            losses.shift_values(values, 0.9, num_steps),
        )

    for shape in ((2, 3), (4, 5)):
        values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        sums, shifted = both(values, 2)
        np.testing.assert_allclose(sums, future_sum(values, 0.9, 2), rtol=1e-6)
        assert (shifted.shape, shifted.dtype) == (shape, tf.float64)
    assert both.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: losses.discounted_future_sum(x, 0.9, 1),
        lambda x: losses.discounted_future_sum_masked(x, 0.9, 1, [1]),
        lambda x: losses.shift_values(x, 0.9, 1),
    ],
)
def test_values_without_a_batch_are_an_error(call):
    with pytest.raises(ValueError, match=r"values: got rank 1 .*newaxis"):
        call(tf.zeros([3]))


def test_impossible_numbers_of_steps_are_errors():
    with pytest.raises(ValueError, match=r"num_steps: got 0, .*at least 1"):
        losses.discounted_future_sum(VALUES, 0.9, 0)
    with pytest.raises(ValueError, match=r"num_steps: got -1, .*at least 0"):
        losses.shift_values(VALUES, 0.9, -1)
