"""Statistics of normalizers against NumPy, however the data is split."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.utils import tensor_normalizer

NUMBER = 12
SPECS = (tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float64))


def rows_of(x, offset):
    return np.float32(x[:, :2] + offset), np.float64(x[:, 2] * 3 - offset)


@given(
    st.data(),
    properties.floats(NUMBER, 3),
    properties.flags(NUMBER),
    st.sampled_from([0.0, 1e3, -1e6]),
)
def test_mean_and_variance_are_numpys_for_any_split_and_mask(data, x, mask, offset):
    rows = rows_of(x, offset)
    normalizer = tensor_normalizer.StreamingTensorNormalizer(SPECS)
    for part in properties.cut(data.draw, NUMBER):
        normalizer.update(
            tuple(tf.constant(values[part]) for values in rows),
            mask=tf.constant(mask[part]),
        )
    counts, means, squares, _ = normalizer.variables
    for i, values in enumerate(rows):
        kept = np.float64(values[mask])
        assert int(counts[i]) == len(kept)
        if len(kept):
            np.testing.assert_allclose(means[i], kept.mean(0), rtol=1e-6, atol=1e-4)
            deviations = (kept - kept.mean(0)) ** 2
            np.testing.assert_allclose(
                squares[i], deviations.sum(0), rtol=1e-3, atol=1e-3
            )


@given(properties.floats(NUMBER, 3), properties.floats(4, 3), st.booleans())
def test_normalized_values_are_those_of_the_formula(x, others, centers):
    normalizer = tensor_normalizer.StreamingTensorNormalizer(SPECS)
    rows, values = rows_of(x, 5.0), rows_of(others, 5.0)
    normalizer.update(rows)
    got = normalizer.normalize(
        values, clip_value=2.0, center_mean=centers, variance_epsilon=0.1
    )
    for one, before, result in zip(values, rows, got, strict=True):
        shifted = one - before.mean(0) * centers
        expected = np.clip(shifted / np.sqrt(np.float64(before).var(0) + 0.1), -2, 2)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


@given(st.data(), properties.floats(NUMBER, 3), properties.flags(NUMBER))
def test_moving_averages_are_those_of_a_loop(data, x, mask):
    rate = 0.25
    normalizer = tensor_normalizer.EMATensorNormalizer(SPECS, norm_update_rate=rate)
    rows = rows_of(x, 0.0)
    expected = [[np.zeros(v.shape[1:]), np.ones(v.shape[1:])] for v in rows]
    for part in properties.cut(data.draw, NUMBER):
        normalizer.update(
            tuple(tf.constant(values[part]) for values in rows),
            mask=tf.constant(mask[part]),
        )
        for moments, values in zip(expected, rows, strict=True):
            kept = values[part][mask[part]].astype(np.float64)
            if len(kept):
                deviations = kept - moments[0]
                moments[1] += rate * (np.mean(deviations**2, 0) - moments[1])
                moments[0] += rate * np.mean(deviations, 0)
    for i, moments in enumerate(expected):
        for variables, value in zip(normalizer.variables, moments, strict=True):
            np.testing.assert_allclose(variables[i], value, rtol=1e-4, atol=1e-3)
