"""Losses of examples as one number, against NumPy."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.losses import aggregation

BATCH, LENGTH = 3, 4
LOSSES = properties.floats(BATCH, LENGTH)


@given(
    LOSSES,
    st.sampled_from([(), (BATCH,), (BATCH, LENGTH)]).flatmap(
        lambda shape: properties.floats(*shape)
    ),
    st.none() | st.integers(1, 9),
    st.lists(properties.FLOATS, max_size=3),
)
def test_the_total_is_the_weighted_mean_and_what_regularizes(
    losses, weights, batch_size, regularization
):
    wide = weights.reshape(weights.shape + (1,) * (2 - weights.ndim)) * np.ones(
        (BATCH, LENGTH)
    )
    expected = np.sum(losses * wide, dtype=np.float64) / LENGTH / (batch_size or BATCH)
    # A weight of 0 removes a loss that is not finite.
    losses = np.where(wide == 0, np.float32(np.inf), losses)
    got = aggregation.aggregate_losses(
        tf.constant(losses), weights, batch_size, regularization
    )
    np.testing.assert_allclose(got.weighted, expected, rtol=1e-4, atol=1e-2)
    total = expected + sum(regularization)
    np.testing.assert_allclose(got.total_loss, total, rtol=1e-4, atol=1e-2)
    assert (got.regularization is None) == (not regularization)


@given(LOSSES, properties.flags(BATCH, LENGTH).filter(np.any))
def test_masked_values_do_not_count(values, mask):
    kept = np.float64(values[mask])
    masked = tf.constant(np.where(mask, values, np.float32(np.nan)))
    mean = aggregation.masked_mean(masked, tf.constant(mask))
    np.testing.assert_allclose(mean, kept.mean(), rtol=1e-4, atol=1e-3)
    got = aggregation.standardize(masked, tf.constant(np.float32(mask))).numpy()
    if kept.std() > 0.1:
        expected = (kept - kept.mean()) / kept.std()
        np.testing.assert_allclose(got[mask], expected, rtol=1e-3, atol=1e-3)
