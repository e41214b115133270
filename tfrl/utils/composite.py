"""Shape operations that work on dense and on sparse tensors alike."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def shape(tensor: Any) -> tf.Tensor:
    """Returns the dynamic (dense) shape, int64."""
    if isinstance(tensor, tf.SparseTensor):
        return tensor.dense_shape
    return tf.shape(tensor, out_type=tf.int64)


def reshape(t: Any, shape: Any) -> Any:
    """Reshapes `t` to `shape`, a list or an integer tensor."""
    if isinstance(t, tf.SparseTensor):
        return tf.sparse.reshape(t, shape)
    return tf.reshape(t, shape)


def squeeze(t: Any, axis: int) -> Any:
    """Removes dimension `axis`, which must be 1.

    Raises:
      tf.errors.InvalidArgumentError: if a sparse tensor has another size there.
      ValueError: if a dense tensor is known to have another size there.
    """
    if not isinstance(t, tf.SparseTensor):
        return tf.squeeze(t, [axis])
    size = t.dense_shape[axis]
    check = tf.debugging.assert_equal(
        size,
        tf.ones_like(size),
        message=f"squeeze: axis {axis} of a SparseTensor must be of size 1; slice it.",
    )
    with tf.control_dependencies([] if check is None else [check]):
        return _without_axis(t, t.indices, t.values, axis)


def expand_dims(t: Any, axis: int) -> Any:
    """Adds a dimension of size 1 at `axis`."""
    if isinstance(t, tf.SparseTensor):
        return tf.sparse.expand_dims(t, axis)
    return tf.expand_dims(t, axis)


def slice_from(tensor: Any, axis: int, start: Any) -> Any:
    """Returns `tensor[start:]` along `axis`; `start` may be negative."""
    if not isinstance(tensor, tf.SparseTensor):
        return tensor[(slice(None),) * axis + (slice(start, None),)]
    size = tensor.dense_shape[axis]
    start = _from_the_left(start, size)
    return _sparse_slice(tensor, axis, start, size - start)


def slice_to(tensor: Any, axis: int, end: Any) -> Any:
    """Returns `tensor[:end]` along `axis`; `end` may be negative."""
    if not isinstance(tensor, tf.SparseTensor):
        return tensor[(slice(None),) * axis + (slice(None, end),)]
    size = tensor.dense_shape[axis]
    return _sparse_slice(tensor, axis, tf.zeros_like(size), _from_the_left(end, size))


def select(t: Any, index: Any) -> Any:
    """Picks one entry of axis 1 in each row: `[B, T, ...]` to `[B, ...]`.

    Args:
      t: a dense or sparse tensor `[B, T, ...]`.
      index: a number, or int `[B]` for a different entry in each row.
    """
    if isinstance(t, tf.SparseTensor):
        # Entries outside the picked ones are dropped, so axis 1 can go.
        wanted = tf.cast(tf.broadcast_to(index, t.dense_shape[:1]), tf.int64)
        keep = tf.equal(t.indices[:, 1], tf.gather(wanted, t.indices[:, 0]))
        indices = tf.boolean_mask(t.indices, keep)
        return _without_axis(t, indices, tf.boolean_mask(t.values, keep), axis=1)
    if isinstance(index, int):
        return t[:, index]
    return tf.gather(t, index, axis=1, batch_dims=1)


def _from_the_left(position: Any, size: tf.Tensor) -> tf.Tensor:
    position = tf.cast(position, size.dtype)
    return tf.clip_by_value(
        tf.where(position < 0, position + size, position), tf.zeros_like(size), size
    )


def _sparse_slice(
    t: tf.SparseTensor, axis: int, start: tf.Tensor, length: tf.Tensor
) -> tf.SparseTensor:
    # One-hot along the ranks: `axis` is shifted and shortened, the rest stays.
    on_axis = tf.one_hot(axis, tf.size(t.dense_shape), dtype=tf.int64)
    starts = on_axis * start
    sizes = tf.where(on_axis == 1, length, t.dense_shape)
    return tf.sparse.slice(t, starts, sizes)


def _without_axis(
    t: tf.SparseTensor, indices: tf.Tensor, values: tf.Tensor, axis: int
) -> tf.SparseTensor:
    return tf.SparseTensor(
        indices=tf.concat([indices[:, :axis], indices[:, axis + 1 :]], axis=1),
        values=values,
        dense_shape=tf.concat([t.dense_shape[:axis], t.dense_shape[axis + 1 :]], 0),
    )
