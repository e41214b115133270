"""Checks of the context of a trace: eager, in a graph, or compiled by XLA.

XLA compiles assertions away: a program that fails would leave the variables that it
updates in place with memory that was freed. So the assertions here exist outside of XLA
only, and whoever runs a compiled program checks its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals

_PACKAGE = __name__.removesuffix(".compilation.context")


def in_xla_graph() -> bool:
    """Whether the graph being built is one that XLA compiles."""
    return not tf.executing_eagerly() and internals.is_xla_graph(
        tf.compat.v1.get_default_graph()
    )


def assert_true(condition: tf.Tensor, data: Sequence[Any]) -> Any:
    """Returns an op that fails unless `condition`; one that does nothing under XLA.

    Args:
      condition: A bool scalar.
      data: Strings and tensors, the text of the `tf.errors.InvalidArgumentError`.
    """
    if in_xla_graph():
        return tf.no_op()
    # The bare op: tf.debugging.Assert puts each into a tf.cond, which costs more.
    return tf.raw_ops.Assert(condition=condition, data=data)


def assert_finite(tensor: tf.Tensor, message: str) -> tf.Tensor:
    """Returns `tensor` after checking it for NaN and infinity, except under XLA.

    Code that must not run after a failure has to depend on the result.

    Args:
      tensor: Floating-point numbers.
      message: The text of the `tf.errors.InvalidArgumentError`.
    """
    return tensor if in_xla_graph() else tf.debugging.check_numerics(tensor, message)


def is_of_this_package(kind: type) -> bool:
    """Whether a class is defined in this package, whatever name it is installed by."""
    return kind.__module__.startswith(f"{_PACKAGE}.")
