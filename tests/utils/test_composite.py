"""Shape operations give the same for dense and for sparse tensors."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import composite

DENSE = np.arange(24).reshape(2, 3, 4)


def assert_same_for_sparse(operation):
    dense = operation(tf.constant(DENSE))
    sparse = tf.sparse.to_dense(operation(tf.sparse.from_dense(DENSE)))
    np.testing.assert_array_equal(sparse, dense)
    return dense


@pytest.mark.parametrize("start", [0, 1, -1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slice_from(axis, start):
    result = assert_same_for_sparse(lambda t: composite.slice_from(t, axis, start))
    index = (slice(None),) * axis + (slice(start, None),)
    np.testing.assert_array_equal(result, DENSE[index])


@pytest.mark.parametrize("end", [1, 2, -1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slice_to(axis, end):
    result = assert_same_for_sparse(lambda t: composite.slice_to(t, axis, end))
    index = (slice(None),) * axis + (slice(None, end),)
    np.testing.assert_array_equal(result, DENSE[index])


def test_reshape_and_shape():
    assert_same_for_sparse(lambda t: composite.reshape(t, [6, 4]))
    assert_same_for_sparse(
        lambda t: composite.squeeze(
            composite.expand_dims(composite.reshape(t, [24]), 0), 0
        )
    )
    for tensor in (tf.constant(DENSE), tf.sparse.from_dense(DENSE)):
        np.testing.assert_array_equal(composite.shape(tensor), [2, 3, 4])


def test_squeeze_of_a_larger_dimension_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        composite.squeeze(tf.constant(DENSE), 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be of size 1"):
        composite.squeeze(tf.sparse.from_dense(DENSE), 1)


def test_select_picks_one_entry_a_row():
    result = assert_same_for_sparse(lambda t: composite.select(t, tf.constant([2, 0])))
    np.testing.assert_array_equal(result, DENSE[[0, 1], [2, 0]])
    same = assert_same_for_sparse(lambda t: composite.select(t, 1))
    np.testing.assert_array_equal(same, DENSE[:, 1])
