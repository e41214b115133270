"""Tells whether Python code did anything that the graph being built will repeat."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfrl.compilation import variable_substitution

# A stateful operation that changes nothing.
_READS = frozenset({"ReadVariableOp"})


class Mark(NamedTuple):
    """A moment while a graph is built.

    Attributes:
      graph: The graph.
      num_operations: The number of its operations.
      substitutes: The tensors that replace variables in the graph, if there are any.
    """

    graph: tf.Graph
    num_operations: int
    substitutes: list[tf.Tensor]


@tf.autograph.experimental.do_not_convert
def mark() -> Mark:
    """Returns a mark of the graph's current state, for `added_since`."""
    graph = tf.compat.v1.get_default_graph()
    return Mark(graph, len(graph.get_operations()), _substitutes())


@tf.autograph.experimental.do_not_convert
def added_since(mark: Mark) -> bool:
    """Whether a stateful operation was added to the graph after `mark` was made.

    Stateful operations change variables, write files, print or call Python. An
    assignment to a substituted variable counts as one.
    """
    added = mark.graph.get_operations()[mark.num_operations :]
    if any(op.op_def.is_stateful and op.type not in _READS for op in added):
        return True
    before = mark.substitutes
    return any(a is not b for a, b in zip(before, _substitutes(), strict=True))


def _substitutes() -> list[tf.Tensor]:
    substitution = variable_substitution.active()
    return [] if substitution is None else substitution.tensors()
