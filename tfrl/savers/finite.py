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
    if not can_be_checked(variable):
        return tf.constant(True)
    return tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(variable)))


def all_finite(variables: Iterable[Any]) -> tf.Tensor:
    """Returns whether all numbers of all variables are finite, a bool scalar."""
    checked = [is_finite(v) for v in variables if can_be_checked(v)]
    return tf.reduce_all(tf.stack(checked)) if checked else tf.constant(True)
