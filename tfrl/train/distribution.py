"""A learner's use of `tf.distribute`: data for replicas, and means of results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import internals, replicas
from tfrl.utils import common, variables
from tfrl.utils.optimization import optimizers


def check_parts(
    strategy: tf.distribute.Strategy, agent: tf_agent.TFAgent, train_step: tf.Variable
) -> None:
    """Checks that an agent can be trained by several replicas.

    Args:
      strategy: The strategy.
      agent: The agent.
      train_step: The counter of train steps.

    Raises:
      ValueError: A part was not made in the strategy's scope, an optimizer clips or
        accumulates gradients, the agent applies gradients itself, or a layer normalizes
        by the statistics of one replica's examples.
    """
    if strategy.num_replicas_in_sync == 1:
        return
    parts = tf.train.TrackableView(agent).descendants()
    adapters = [p for p in parts if isinstance(p, optimizers.OptimizerAdapter)]
    for adapter in adapters:
        adapter.check_replicas(strategy)
    _check_applied_by_adapters(agent, parts, adapters)
    for part in parts:
        if isinstance(part, keras.layers.Layer):
            _check_statistics(internals.flatten_layers(part))
    for variable in variables.as_tf_variables(agent.variables()):
        replicas.check_scope(strategy, variable, f"agent {agent.name!r}")
    replicas.check_scope(strategy, train_step, "train_step")


def _check_applied_by_adapters(
    agent: tf_agent.TFAgent,
    parts: Iterable[Any],
    adapters: Iterable[optimizers.OptimizerAdapter],
) -> None:
    adapted = {id(adapter.optimizer) for adapter in adapters}
    for part in parts:
        if isinstance(part, keras.optimizers.Optimizer) and id(part) not in adapted:
            raise ValueError(
                f"agent {agent.name!r}: got the optimizer {part.name!r}, which it "
                "applies by itself, expected a tfrl.utils.optimization.optimizers."
                "OptimizerAdapter; give it to a part of the update, or to self._apply, "
                "which average the gradients of replicas."
            )


def _check_statistics(layers: Iterable[keras.layers.Layer]) -> None:
    for layer in layers:
        is_batch_norm = isinstance(layer, keras.layers.BatchNormalization)
        if is_batch_norm and not layer.synchronized:
            raise ValueError(
                f"layer {layer.name!r}: got a BatchNormalization with several "
                "replicas, each of which would normalize by the statistics of its own "
                "examples, expected one with synchronized=True; or use a "
                "LayerNormalization."
            )


def iterator(
    strategy: tf.distribute.Strategy,
    dataset_fn: Callable[[tf.distribute.InputContext], tf.data.Dataset],
    options: tf.distribute.InputOptions | None = None,
) -> Any:
    """Returns an iterator of the dataset, whose elements go to the replicas in turn."""
    if strategy.num_replicas_in_sync == 1:
        return iter(dataset_fn(tf.distribute.InputContext()))
    return iter(strategy.distribute_datasets_from_function(dataset_fn, options))


def reduced(
    strategy: tf.distribute.Strategy,
    nest: Any,
    reduce_op: tf.distribute.ReduceOp = tf.distribute.ReduceOp.MEAN,
) -> Any:
    """Reduces the results of the replicas to one; with one replica, does nothing.

    Args:
      strategy: The strategy.
      nest: A nest of scalars, or of tensors `[B, ...]` of a replica's examples.
      reduce_op: How scalars are reduced.

    Returns:
      The reduced scalars, and the examples of all replicas one after the other.
    """
    if strategy.num_replicas_in_sync == 1:
        return nest

    def reduce(value: Any) -> tf.Tensor:
        if strategy.experimental_local_results(value)[0].shape.rank:
            return strategy.gather(value, axis=0)
        return strategy.reduce(reduce_op, value, axis=None)

    return tf.nest.map_structure(reduce, nest)


@contextlib.contextmanager
def summaries(
    writer: tf.summary.SummaryWriter, train_step: tf.Variable, interval: int
) -> Iterator[None]:
    """Writes the summaries of every `interval`-th train step in this context."""
    is_due = interval and (lambda: tf.equal(train_step % interval, 0))
    with (
        writer.as_default(),
        common.soft_device_placement(),
        tf.summary.record_if(is_due or False),
    ):
        yield
