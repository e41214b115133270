"""Means over the replicas of a `tf.distribute` strategy, and one replica's examples.

A strategy runs a train step once for each replica, on its part of the batch. Outside of
a strategy, and with one replica, these functions do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import context


def are_several() -> bool:
    """Whether this code runs, or is traced, for one of several replicas."""
    replica = tf.distribute.get_replica_context()
    return replica is not None and replica.num_replicas_in_sync > 1


def mean_over_replicas(tensors: Sequence[Any]) -> list[Any]:
    """Returns the mean of each tensor over all replicas, the same in every replica.

    Args:
      tensors: Tensors, `tf.IndexedSlices` or None, which stays None. With several
        replicas slices become dense.

    Raises:
      NotImplementedError: XLA compiles this code, or it is in a branch or a loop of a
        graph, where replicas cannot wait for each other.
    """
    if not are_several():
        return list(tensors)
    present = [tf.convert_to_tensor(t) for t in tensors if t is not None]
    means = iter(
        _together(lambda c: c.all_reduce(tf.distribute.ReduceOp.MEAN, present))
    )
    return [None if tensor is None else next(means) for tensor in tensors]


def mean(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the mean of a tensor over all replicas; see `mean_over_replicas`."""
    (result,) = mean_over_replicas([tensor])
    return result


def reduce_sum(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the sum of all numbers of a tensor, over all replicas, a scalar.

    Raises:
      NotImplementedError: See `mean_over_replicas`.
    """
    total = tf.reduce_sum(tensor)
    if not are_several():
        return total
    return _together(lambda c: c.all_reduce(tf.distribute.ReduceOp.SUM, [total]))[0]


def gathered(nest: Any) -> Any:
    """Returns a nest of examples `[B, ...]` with the examples of all replicas.

    Raises:
      NotImplementedError: See `mean_over_replicas`.
    """
    if not are_several():
        return nest
    flat = _together(lambda c: c.all_gather(tf.nest.flatten(nest), axis=0))
    return tf.nest.pack_sequence_as(nest, flat)


def of_whole_batch(
    draw: Callable[[Any], tf.Tensor],
    shape: tf.types.experimental.TensorLike,
    axis: int = 0,
) -> tf.Tensor:
    """Draws random numbers for the examples of all replicas; returns this replica's.

    So the examples of a batch get the same numbers for every number of replicas.

    Args:
      draw: A function of a shape that returns a tensor of this shape.
      shape: The shape of the result.
      axis: The dimension of the result that counts the examples.
    """
    if not are_several():
        return draw(shape)
    size = tf.unstack(tf.convert_to_tensor(shape, tf.int32))
    known = [tf.get_static_value(n) for n in size]
    size = [n if k is None else int(k) for n, k in zip(size, known, strict=True)]
    if not size:
        return draw(shape)
    replica = tf.distribute.get_replica_context()
    whole, begin = list(size), [0] * len(size)
    whole[axis] = replica.num_replicas_in_sync * size[axis]
    begin[axis] = replica.replica_id_in_sync_group * size[axis]
    return tf.slice(draw(whole), begin, size)


def seed_of_replica(seed: tf.Tensor) -> tf.Tensor:
    """Returns a stateless seed `[2]` that differs between replicas."""
    if not are_several():
        return seed
    replica = tf.distribute.get_replica_context()
    return tf.random.experimental.stateless_fold_in(
        seed, replica.replica_id_in_sync_group
    )


def check_scope(
    strategy: tf.distribute.Strategy, variable: tf.Variable, where: str
) -> None:
    """Raises a ValueError unless a variable was made in the scope of a strategy.

    Args:
      strategy: The strategy.
      variable: The variable.
      where: The object to which the variable belongs, for the error.
    """
    if not strategy.extended.variable_created_in_scope(variable):
        raise ValueError(
            f"strategy: the {where} has the variable {variable.name!r}, which was made "
            "outside of the strategy's scope, expected all to be made in it; make the "
            "networks, the optimizers, the agent and the train step in `with "
            "strategy.scope():`."
        )


def _together(collect: Callable[[Any], Any]) -> Any:
    """Calls a function of the replica context that waits for all replicas."""
    if context.in_xla_graph():
        raise _not_here("in a graph that XLA compiles")
    try:
        return collect(tf.distribute.get_replica_context())
    except RuntimeError as error:
        if "merge_call" not in str(error):
            raise
        raise _not_here("in a branch, a loop or a tf.function of the update") from error


def _not_here(where: str) -> NotImplementedError:
    return NotImplementedError(
        f"strategy: got numbers of several replicas to combine {where}, expected this "
        "only directly in the function that strategy.run calls, since replicas cannot "
        "wait for each other elsewhere; leave jit_compile=False, and put a "
        "tf.function, a loop or a branch around strategy.run, not into agent.train."
    )
