"""Sums, and the examples of one replica, in the replicas of a `tf.distribute` strategy.

A strategy runs a train step once for each replica, on its part of the batch. Outside of
a strategy, and with one replica, these functions do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def are_several() -> bool:
    """Whether this code runs, or is traced, for one of several replicas."""
    replica = tf.distribute.get_replica_context()
    return replica is not None and replica.num_replicas_in_sync > 1


def sum_over_replicas(tensors: Sequence[Any]) -> list[Any]:
    """Returns the sum of each tensor over all replicas, the same in every replica.

    Args:
      tensors: Tensors, `tf.IndexedSlices` or None, which stays None. With several
        replicas slices become dense.
    """
    if not are_several():
        return list(tensors)
    present = [tf.convert_to_tensor(t) for t in tensors if t is not None]
    replica = tf.distribute.get_replica_context()
    sums = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if tensor is None else next(sums) for tensor in tensors]


def reduce_sum(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the sum of all numbers of a tensor, over all replicas, a scalar."""
    (total,) = sum_over_replicas([tf.reduce_sum(tensor)])
    return total


def of_whole_batch(
    draw: Callable[[Any], tf.Tensor], shape: tf.types.experimental.TensorLike
) -> tf.Tensor:
    """Draws random numbers for the examples of all replicas; returns this replica's.

    So the examples of a batch get the same numbers however many replicas share it.

    Args:
      draw: A function of a shape that returns a tensor of this shape.
      shape: The shape of the result, whose first dimension are the examples.
    """
    if not are_several():
        return draw(shape)
    size = tf.unstack(tf.convert_to_tensor(shape, tf.int32))
    known = [tf.get_static_value(n) for n in size]
    size = [n if k is None else int(k) for n, k in zip(size, known, strict=True)]
    if not size:
        return draw(shape)
    replica = tf.distribute.get_replica_context()
    first = replica.replica_id_in_sync_group * size[0]
    numbers = draw([replica.num_replicas_in_sync * size[0], *size[1:]])
    return tf.slice(numbers, [first, *[0] * len(size[1:])], size)


def seed_of_replica(seed: tf.Tensor) -> tf.Tensor:
    """Returns a stateless seed `[2]` that differs between replicas."""
    if not are_several():
        return seed
    replica = tf.distribute.get_replica_context()
    return tf.random.experimental.stateless_fold_in(
        seed, replica.replica_id_in_sync_group
    )
