"""Shape operations give the same for dense, sparse and ragged tensors."""

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
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_slice_from(axis, start):
    result = assert_same_for_sparse(lambda t: composite.slice_from(t, axis, start))
    index = (slice(None),) * (axis % 3) + (slice(start, None),)
    np.testing.assert_array_equal(result, DENSE[index])


@pytest.mark.parametrize("end", [1, 2, -1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_slice_to(axis, end):
    result = assert_same_for_sparse(lambda t: composite.slice_to(t, axis, end))
    index = (slice(None),) * (axis % 3) + (slice(None, end),)
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


@pytest.mark.parametrize("index", [0, 2])
def test_unstack_time_splits_the_entries_of_axis_1(index):
    result = assert_same_for_sparse(lambda t: composite.unstack_time(t, 3)[index])
    np.testing.assert_array_equal(result, DENSE[:, index])


@pytest.mark.parametrize("axis", [1, -1])
def test_squeeze_counts_axes_from_either_end(axis):
    assert_same_for_sparse(
        lambda t: composite.squeeze(composite.reshape(t, [24, 1]), axis)
    )


RAGGED = tf.RaggedTensor.from_row_lengths([1, 2, 3, 4, 5, 6], [2, 1, 3])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack_makes_a_new_dimension(axis):
    result = assert_same_for_sparse(lambda t: composite.stack([t, t * 2], axis))
    np.testing.assert_array_equal(result, np.stack([DENSE, 2 * DENSE], axis))
    ragged = composite.stack([RAGGED, RAGGED])
    assert ragged.to_list() == 2 * [RAGGED.to_list()]


def test_unstack_is_the_inverse_of_stack():
    for i in range(2):
        row = assert_same_for_sparse(lambda t, i=i: composite.unstack(t)[i])
        np.testing.assert_array_equal(row, DENSE[i])
    rows = [row.numpy().tolist() for row in composite.unstack(RAGGED)]
    assert rows == [[1, 2], [3], [4, 5, 6]]


def test_unstacking_an_unknown_number_of_rows_is_an_error():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def unstack(t):
        return composite.unstack(t)

    with pytest.raises(ValueError, match="unstack: got a RaggedTensor of shape"):
        unstack.get_concrete_function()


def test_repeat_puts_copies_side_by_side():
    result = assert_same_for_sparse(lambda t: composite.repeat(t, 3))
    np.testing.assert_array_equal(result, np.repeat(DENSE, 3, axis=0))
    repeated = composite.repeat(RAGGED, 2).to_list()
    assert repeated == [[1, 2], [1, 2], [3], [3], [4, 5, 6], [4, 5, 6]]


@pytest.mark.parametrize(
    "condition", [[True, False], [[True, False, True], [False, True, False]]]
)
def test_where_takes_whole_entries_of_the_leading_dimensions(condition):
    condition = np.array(condition)
    result = assert_same_for_sparse(
        lambda t: composite.where(tf.constant(condition), t, t * 2)
    )
    expanded = condition.reshape(condition.shape + (1,) * (3 - condition.ndim))
    np.testing.assert_array_equal(result, np.where(expanded, DENSE, 2 * DENSE))


def test_where_takes_whole_ragged_rows():
    other = tf.ragged.constant([[7], [8, 9], [10]], dtype=tf.int32)
    chosen = composite.where(tf.constant([True, False, True]), RAGGED, other)
    assert chosen.to_list() == [[1, 2], [8, 9], [4, 5, 6]]


@pytest.mark.parametrize("outer_rank", [0, 1, 2, 3])
def test_outer_dimensions_are_merged(outer_rank):
    result = assert_same_for_sparse(lambda t: composite.flatten_outer(t, outer_rank))
    expected = DENSE.reshape(-1, *DENSE.shape[outer_rank:])
    expected = DENSE[np.newaxis] if outer_rank == 0 else expected
    np.testing.assert_array_equal(result, expected)


def test_uniform_outer_dimensions_of_ragged_tensors_are_merged():
    batched = composite.expand_dims(RAGGED, 0)
    assert composite.flatten_outer(batched, 2).to_list() == RAGGED.to_list()
    assert composite.flatten_outer(RAGGED, 0).shape == [1, 3, None]


def test_sparse_operations_keep_working_where_sizes_are_unknown():
    @tf.function(input_signature=[tf.SparseTensorSpec([None, None, 4], tf.int64)])
    def go(t):
        merged = composite.flatten_outer(composite.repeat(t, 2), 2)
        return tf.sparse.to_dense(composite.slice_from(merged, -1, 1))

    expected = np.repeat(DENSE, 2, axis=0).reshape(-1, 4)[:, 1:]
    np.testing.assert_array_equal(go(tf.sparse.from_dense(DENSE)), expected)
