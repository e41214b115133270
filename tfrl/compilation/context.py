"""Checks of the context of a trace: eager, in a graph, or compiled by XLA.

XLA removes assertions, because a program that failed would leave the variables that it
updates in place with freed memory. So the assertions here do nothing under XLA, and the
caller of a compiled program checks its results instead.
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
    """Returns an op that fails unless `condition` is true; under XLA, a no-op.

    Args:
      condition: A bool scalar.
      data: Strings and tensors to print in the `tf.errors.InvalidArgumentError`.
    """
    if in_xla_graph():
        return tf.no_op()
    # The raw op is cheaper: tf.debugging.Assert wraps each assertion in a tf.cond.
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
    """Whether a class is defined in this package, which may be a vendored copy."""
    return kind.__module__.startswith(f"{_PACKAGE}.")


def name_in_this_package(module: str) -> str:
    """Returns the full name of `module` of this package, or of a vendored copy."""
    return f"{_PACKAGE}.{module}"
