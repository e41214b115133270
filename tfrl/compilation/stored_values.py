"""Variables whose values may have any dtype, on any device.

TensorFlow has no GPU kernel for variables of int32. Such a variable lies on the CPU,
even if it was made in the scope of a GPU, and a program that XLA compiled for the GPU
cannot reach it. So int32 is stored as uint32, for which these kernels exist. The bits
stay the same. Other dtypes are stored as they are.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


def stored_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype of a variable that stores values of `dtype`."""
    dtype = tf.as_dtype(dtype)
    return tf.uint32 if dtype == tf.int32 else dtype


def zeros(shape: Any, dtype: tf.DType, name: str | None = None) -> tf.Variable:
    """Returns a variable that stores zeros, and is not trained.

    Args:
      shape: The shape of the values. A dimension of None may change its size, and
        starts with 0.
      dtype: The dtype of the values.
      name: The variable's name.
    """
    shape, stored = tf.TensorShape(shape), stored_dtype(dtype)

    def initial_value() -> tf.Tensor:
        sizes = [size or 0 for size in shape]
        if stored == tf.uint32:
            # A GPU cannot fill uint32: TensorFlow would copy it there from the CPU.
            return tf.bitcast(tf.zeros(sizes), stored)
        return tf.zeros(sizes, stored)

    # A function, so that the zeros of a large variable do not stay in memory.
    return tf.Variable(
        initial_value, trainable=False, name=name, shape=shape, dtype=stored
    )


def to_stored(value: tf.Tensor) -> tf.Tensor:
    """Converts values `[...]` to the dtype in which a variable stores them."""
    return tf.bitcast(value, tf.uint32) if value.dtype == tf.int32 else value


def from_stored(stored: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Converts the contents `[...]` of a variable to values of `dtype`."""
    return tf.bitcast(stored, dtype) if stored.dtype != dtype else stored


def read(variable: tf.Variable, dtype: tf.DType) -> tf.Tensor:
    """Returns the values, of `dtype`, of a variable that `zeros` made."""
    return from_stored(variable.read_value(), dtype)


def assign(variable: tf.Variable, value: tf.Tensor) -> None:
    """Assigns values to a variable that `zeros` made for their dtype."""
    variable.assign(to_stored(value))


class StoredNest(tf.Module):
    """Variables that store a nest of tensors: one for each of its leaves."""

    def __init__(self, specs: Any, name: str = "stored") -> None:
        """Creates the variables, filled with zeros.

        Args:
          specs: The nest of specs of the tensors; for dimensions of None see `zeros`.
          name: The prefix of the variables' names.
        """
        super().__init__(name=name)
        flat = tf.nest.flatten(specs)
        self._dtypes = tuple(spec.dtype for spec in flat)
        # Bound in a function, because tf.Module wraps containers that are attributes.
        self._pack = functools.partial(tf.nest.pack_sequence_as, specs)
        self._leaves = [
            zeros(spec.shape, spec.dtype, f"{name}_{i}") for i, spec in enumerate(flat)
        ]

    def read(self) -> Any:
        """Returns the nest of tensors."""
        return self._pack(list(map(read, self._leaves, self._dtypes)))

    def assign(self, values: Any) -> None:
        """Assigns a nest of tensors."""
        for variable, value, dtype in zip(
            self._leaves, tf.nest.flatten(values), self._dtypes, strict=True
        ):
            assign(variable, tf.convert_to_tensor(value, dtype))
