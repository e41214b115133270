"""One scalar from losses per example and regularisation losses."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses
from tfrl.losses import aggregation

LOSSES = np.array([[1.0, 2], [3, 6]], np.float32)


def aggregate(values, **kwargs):
    return aggregation.aggregate_losses(tf.constant(values), **kwargs)


def test_mean_over_all_dimensions():
    for values in (LOSSES[:, 0], LOSSES, LOSSES[..., None]):
        result = aggregate(values)
        np.testing.assert_array_equal(result.total_loss, values.mean())
        np.testing.assert_array_equal(result.weighted, values.mean())
        assert result.regularization is None


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (2.0, 6.0),
        ([1.0, 0.0], 3 / 4),
        ([[1.0, 0.0], [0.0, 0.5]], (1 + 3) / 4),
    ],
)
def test_weights_are_expanded_on_the_right(weight, expected):
    np.testing.assert_array_equal(aggregate(LOSSES, sample_weight=weight)[0], expected)


def test_weight_of_zero_removes_what_is_not_a_number():
    result = aggregate([1.0, np.nan], sample_weight=[1.0, 0.0])
    np.testing.assert_array_equal(result.total_loss, 0.5)


def test_global_batch_size_divides():
    np.testing.assert_array_equal(aggregate([1.0, 2.0], global_batch_size=8)[0], 3 / 8)


def test_regularization_is_added():
    result = aggregate([1.0, 2.0], regularization_loss=[tf.constant(1.0), 2.0])
    np.testing.assert_array_equal(result, [4.5, 1.5, 3.0])
    alone = aggregation.aggregate_losses(regularization_loss=[tf.constant(1.0)])
    assert (float(alone.total_loss), alone.weighted) == (1.0, None)


def test_nothing_to_aggregate():
    assert aggregation.aggregate_losses(regularization_loss=[]) == (None, None, None)


def test_scalar_loss_is_an_error():
    with pytest.raises(ValueError, match="per_example_loss: expected one loss per exa"):
        aggregate(1.0)


@pytest.mark.parametrize("shape", [[3], [2, 1, 1], [1, 2], [2, 3]])
def test_weights_that_would_be_broadcast(shape):
    with pytest.raises(
        ValueError, match=r"weights: expected a scalar or a shape that begins \(2, 2\)"
    ):
        aggregate(LOSSES, sample_weight=tf.ones(shape))


def test_mean_where_a_mask_is_true():
    values = tf.constant([1.0, float("nan"), 5.0])
    assert aggregation.masked_mean(values, tf.constant([True, False, True])) == 3.0
    assert aggregation.masked_mean(values, tf.zeros([3], tf.bool)) == 0.0


def test_values_get_mean_zero_and_standard_deviation_one():
    # Mean 3, variance (4 + 0 + 4) / 3.
    values = losses.standardize(tf.constant([1.0, 3.0, 5.0]), tf.ones([3]))
    np.testing.assert_allclose(values, np.array([-2, 0, 2]) / np.sqrt(8 / 3), rtol=1e-6)


def test_masked_values_count_for_nothing_whatever_they_are():
    values = tf.constant([[1.0, np.nan], [np.inf, 3.0]])
    result = losses.standardize(values, tf.constant([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(np.diag(result), [-1, 1], rtol=1e-6)


def test_equal_values_become_zeros():
    np.testing.assert_array_equal(losses.standardize(tf.fill([4], 7.0), tf.ones(4)), 0)
