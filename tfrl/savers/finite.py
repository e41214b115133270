"""Finds variables that hold NaN or infinity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

_CHECKED = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def can_be_checked(variable: Any) -> bool:
    """Whether a variable's dtype has NaN and infinity, and TensorFlow can test it."""
    return tf.as_dtype(variable.dtype) in _CHECKED


def is_finite(variable: Any) -> tf.Tensor:
    """Returns whether all numbers of a variable are finite, a bool scalar."""
    return all_finite([variable])


def all_finite(variables: Iterable[Any]) -> tf.Tensor:
    """Returns whether all numbers of all variables are finite, a bool scalar."""
    sums = [_zero_if_finite(v) for v in variables if can_be_checked(v)]
    if not sums:
        return tf.constant(True)
    # All variables are tested at once, because XLA takes some milliseconds to compile
    # each test.
    return tf.reduce_all(tf.math.is_finite(tf.stack(sums)))


def _zero_if_finite(variable: Any) -> tf.Tensor:
    """Returns 0, or NaN if a number is not finite, a float32 scalar."""
    values = tf.convert_to_tensor(variable)
    return tf.cast(tf.reduce_sum(values - values), tf.float32)
