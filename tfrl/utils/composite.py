"""Shape operations on dense, sparse and ragged tensors.

An axis is an integer and may be negative. The dimensions of a ragged tensor that an
operation works on must be uniform, as batch and time are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import accelerators


def as_tensor(value: Any) -> Any:
    """Returns a tensor of any kind unchanged; makes other values dense tensors."""
    return value if tf.is_tensor(value) else tf.convert_to_tensor(value)


def shape(tensor: Any) -> tf.Tensor:
    """Returns the dynamic shape, int64; the longest row counts for ragged tensors."""
    if isinstance(tensor, tf.SparseTensor):
        return tensor.dense_shape
    if isinstance(tensor, tf.RaggedTensor):
        return tensor.bounding_shape(out_type=tf.int64)
    return tf.shape(tensor, out_type=tf.int64)


def reshape(t: Any, shape: Any) -> Any:
    """Reshapes `t` to `shape`, a list or an integer tensor."""
    if isinstance(t, tf.SparseTensor):
        return tf.sparse.reshape(t, shape)
    return accelerators.moved(lambda t: tf.reshape(t, shape), t)


def squeeze(t: Any, axis: int) -> Any:
    """Removes dimension `axis`, which must be 1.

    Raises:
      tf.errors.InvalidArgumentError: If dimension `axis` of a sparse tensor is not 1.
      ValueError: If dimension `axis` of a dense tensor is known not to be 1.
    """
    if not isinstance(t, tf.SparseTensor):
        return accelerators.moved(lambda t: tf.squeeze(t, [axis]), t)
    axis = _from_first(t, axis)
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
    return accelerators.moved(lambda t: tf.expand_dims(t, axis), t)


def slice_from(tensor: Any, axis: int, start: Any) -> Any:
    """Returns `tensor[start:]` along `axis`; `start` may be negative."""
    axis = _from_first(tensor, axis)
    if not isinstance(tensor, tf.SparseTensor):
        part = (slice(None),) * axis + (slice(start, None),)
        return accelerators.moved(lambda tensor: tensor[part], tensor)
    size = tensor.dense_shape[axis]
    start = _from_the_left(start, size)
    return _sparse_slice(tensor, axis, start, size - start)


def slice_to(tensor: Any, axis: int, end: Any) -> Any:
    """Returns `tensor[:end]` along `axis`; `end` may be negative."""
    axis = _from_first(tensor, axis)
    if not isinstance(tensor, tf.SparseTensor):
        part = (slice(None),) * axis + (slice(None, end),)
        return accelerators.moved(lambda tensor: tensor[part], tensor)
    size = tensor.dense_shape[axis]
    return _sparse_slice(tensor, axis, tf.zeros_like(size), _from_the_left(end, size))


def stack(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Stacks tensors of one shape, with a new dimension at `axis`."""
    if isinstance(tensors[0], tf.SparseTensor):
        axis = axis if axis >= 0 else axis + tensors[0].shape.rank + 1
        return tf.sparse.concat(axis, [tf.sparse.expand_dims(t, axis) for t in tensors])
    return tf.stack(tensors, axis=axis)


def unstack(t: Any) -> list[Any]:
    """Splits `[B, ...]` into B tensors.

    Raises:
      ValueError: If B is not known.
    """
    if not _is_composite(t):
        return tf.unstack(t)
    size = t.shape[0]
    if size is None:
        raise ValueError(
            f"unstack: got a {type(t).__name__} of shape {t.shape}, expected a known "
            "size of the first dimension, which is the number of results."
        )
    if isinstance(t, tf.RaggedTensor):
        return [t[i] for i in range(size)]
    rows = tf.sparse.split(t, num_split=size, axis=0)
    return [squeeze(row, 0) for row in rows]


def flatten_outer(t: Any, outer_rank: int) -> Any:
    """Merges the first `outer_rank` dimensions; 0 adds a dimension of size 1."""
    if outer_rank == 0:
        return expand_dims(t, 0)
    if isinstance(t, tf.RaggedTensor):
        return t.merge_dims(0, outer_rank - 1) if outer_rank > 1 else t
    inner, size = t.shape[outer_rank:], t.shape[:outer_rank].num_elements()
    # Python numbers where the shape is static, so that the result's shape is static.
    if size is None:
        size = tf.reduce_prod(shape(t)[:outer_rank])
    if inner.is_fully_defined():
        return reshape(t, [size, *inner])
    leading = tf.cast(size, tf.int64)[tf.newaxis]
    return reshape(t, tf.concat([leading, shape(t)[outer_rank:]], axis=0))


def repeat(t: Any, times: Any) -> Any:
    """Repeats each entry of the first dimension `times` times, copies side by side."""
    if isinstance(t, tf.RaggedTensor):
        return tf.gather(t, tf.repeat(tf.range(t.nrows()), times))
    if not isinstance(t, tf.SparseTensor):
        return tf.repeat(t, times, axis=0)
    times = tf.cast(times, tf.int64)
    copies = tf.tile(tf.range(times), tf.shape(t.indices, tf.int64)[:1])
    indices = tf.repeat(t.indices, times, axis=0)
    rows = indices[:, 0] * times + copies
    return tf.sparse.reorder(
        tf.SparseTensor(
            indices=tf.concat([rows[:, tf.newaxis], indices[:, 1:]], axis=1),
            values=tf.repeat(t.values, times),
            dense_shape=tf.concat([t.dense_shape[:1] * times, t.dense_shape[1:]], 0),
        )
    )


def where(condition: tf.Tensor, x: Any, y: Any) -> Any:
    """Takes `x` where `condition` is true and `y` elsewhere.

    Args:
      condition: bool; its shape is a prefix of the tensors' shape, `[B]` for ragged
        tensors.
      x: A tensor.
      y: A tensor of the same kind and shape.
    """
    if isinstance(x, tf.RaggedTensor):
        rows = tf.range(x.nrows())
        both = tf.concat([x, y], axis=0)
        return tf.gather(both, tf.where(condition, rows, rows + x.nrows()))
    if not isinstance(x, tf.SparseTensor):
        missing = x.shape.rank - condition.shape.rank
        return tf.where(condition[(..., *(tf.newaxis,) * missing)], x, y)

    def chosen(t: tf.SparseTensor, keep: tf.Tensor) -> tf.SparseTensor:
        outer = t.indices[:, : condition.shape.rank]
        return tf.sparse.retain(t, tf.gather_nd(keep, outer))

    x, y = chosen(x, condition), chosen(y, tf.logical_not(condition))
    return tf.sparse.reorder(
        tf.SparseTensor(
            indices=tf.concat([x.indices, y.indices], axis=0),
            values=tf.concat([x.values, y.values], axis=0),
            dense_shape=x.dense_shape,
        )
    )


def select(t: Any, index: Any) -> Any:
    """Picks one entry of axis 1 in each row: `[B, T, ...]` to `[B, ...]`.

    Args:
      t: A dense or sparse tensor `[B, T, ...]`.
      index: A number, or int `[B]` for a different entry in each row.
    """
    if isinstance(t, tf.SparseTensor):
        # Entries outside the picked ones are dropped, so axis 1 can go.
        wanted = tf.cast(tf.broadcast_to(index, t.dense_shape[:1]), tf.int64)
        keep = tf.equal(t.indices[:, 1], tf.gather(wanted, t.indices[:, 0]))
        indices = tf.boolean_mask(t.indices, keep)
        return _without_axis(t, indices, tf.boolean_mask(t.values, keep), axis=1)
    if isinstance(index, int):
        return accelerators.moved(lambda t: t[:, index], t)
    return accelerators.moved(lambda t: tf.gather(t, index, axis=1, batch_dims=1), t)


def unstack_time(t: Any, num: int) -> list[Any]:
    """Splits the `num` entries of axis 1: `[B, num, ...]` to `num` times `[B, ...]`.

    In a plain graph this takes half the time of as many calls of `select`.
    """
    if _is_composite(t):
        return [select(t, index) for index in range(num)]
    return accelerators.unstack(t, num, axis=1)


def _is_composite(t: Any) -> bool:
    return isinstance(t, tf.SparseTensor | tf.RaggedTensor)


def _from_first(t: Any, axis: int) -> int:
    return axis if axis >= 0 else axis + len(t.shape)


def _from_the_left(position: Any, size: tf.Tensor) -> tf.Tensor:
    position = tf.cast(position, size.dtype)
    return tf.clip_by_value(
        tf.where(position < 0, position + size, position), tf.zeros_like(size), size
    )


def _sparse_slice(
    t: tf.SparseTensor, axis: int, start: tf.Tensor, length: tf.Tensor
) -> tf.SparseTensor:
    # One-hot over the dimensions: only `axis` is offset and shortened.
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
