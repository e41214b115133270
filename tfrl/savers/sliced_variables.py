"""Large variables that checkpoints write and read slice by slice.

TensorFlow copies each variable before it writes it, and reads it into new memory before
it assigns it. So a replay buffer that takes half of the machine's memory could not be
saved. The variables given to `save_in_slices` are written and read in slices of rows,
and only one slice is in memory at a time. A checkpoint has the variables under their
usual keys and with their whole shapes, in one data file per slice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals

# The largest size of a slice in bytes; a variable of less than a quarter of it is not
# sliced.
SLICE_BYTES = 2**26
# The suffix that turns a variable's name into its key in a TensorFlow checkpoint.
VARIABLE_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# The suffix that turns the key of a sliced variable into the key of the rows in a
# slice.
_ROWS = ".ROWS_OF_A_SLICE"
_MARK = "_tfrl_in_slices"


def save_in_slices(variable: tf.Variable) -> None:
    """Makes checkpoints write and read a variable in slices, if it is large.

    If a private name of TensorFlow is missing, checkpoints write and read the variable
    at once.

    Args:
      variable: A variable `[rows, ...]` of numbers, on any device.
    """
    if _bytes_of(variable.shape, variable.dtype) < SLICE_BYTES // 4:
        return
    if _register():
        # This bypasses the attribute tracking of tf.Module.
        object.__setattr__(variable, _MARK, True)


def read_tensor(reader: Any, path: Any, key: str) -> Iterator[tuple[int, Any]]:
    """Yields a tensor of a checkpoint, slice by slice, or whole as it was written.

    Args:
      reader: The checkpoint's `tf.train.load_checkpoint` reader.
      path: The checkpoint's prefix.
      key: The tensor's key.

    Yields:
      The first row of a slice, and its values; 0 and the whole tensor if it was not
      written in slices.
    """
    if not reader.has_tensor(key + _ROWS):
        yield 0, reader.get_tensor(key)
        return
    rows = int(reader.get_tensor(key + _ROWS))
    shape = reader.get_variable_to_shape_map()[key]
    dtype = reader.get_variable_to_dtype_map()[key]
    for start, size in _slices(shape[0], rows):
        with tf.device("CPU"):
            (value,) = tf.raw_ops.RestoreV2(
                prefix=path,
                tensor_names=[key],
                shape_and_slices=[_slice_text(shape, start, size)],
                dtypes=[dtype],
            )
        yield start, value


def _bytes_of(shape: Any, dtype: tf.DType) -> int:
    shape = tf.TensorShape(shape)
    if not shape.is_fully_defined() or not shape.rank:
        return 0
    return math.prod(shape.as_list()) * (tf.as_dtype(dtype).size or 0)


def _slice_text(shape: Any, start: int, size: int) -> str:
    """Returns TensorFlow's text for a slice of rows: the shape, and then the slice."""
    shape = tf.TensorShape(shape).as_list()
    rest = "".join(":-" for _ in shape[1:])
    return f"{' '.join(map(str, shape))} {start},{size}{rest}"


@functools.cache
def _register() -> bool:
    """Registers the functions that save marked variables; returns whether it could."""
    return internals.register_checkpoint_saver(
        "slices", lambda thing: getattr(thing, _MARK, False), _save, _restore
    )


def _save(trackables: Mapping[str, tf.Variable], file_prefix: Any) -> list[tf.Tensor]:
    """Writes each slice into its own file; returns the files' prefixes."""
    prefixes: list[tf.Tensor] = []
    for name, variable in trackables.items():
        shape = variable.shape.as_list()
        rows = max(1, SLICE_BYTES * shape[0] // _bytes_of(shape, variable.dtype))
        # The first file gives the number of rows of each slice.
        names, values, texts = [_key(name) + _ROWS], [tf.constant(rows, tf.int64)], [""]
        for start, size in _slices(shape[0], rows):
            with tf.device(variable.device):
                value = tf.gather(variable, tf.range(start, start + size))
            with tf.device("CPU"):
                prefix = tf.strings.join([file_prefix, f"_temp/part-{len(prefixes)}"])
                tf.raw_ops.SaveV2(
                    prefix=prefix,
                    tensor_names=[*names, _key(name)],
                    shape_and_slices=[*texts, _slice_text(shape, start, size)],
                    tensors=[*values, value],
                )
            prefixes.append(prefix)
            names, values, texts = [], [], []
    return prefixes


def _restore(trackables: Mapping[str, tf.Variable], merged_prefix: Any) -> None:
    """Reads each slice and assigns it to its rows."""
    path = tf.compat.as_str(tf.get_static_value(merged_prefix))
    reader = tf.train.load_checkpoint(path)
    for name, variable in trackables.items():
        for start, part in read_tensor(reader, path, _key(name)):
            value = tf.convert_to_tensor(part)
            with tf.device(variable.device):
                tf.raw_ops.ResourceStridedSliceAssign(
                    ref=variable.handle,
                    begin=[start],
                    end=[start + value.shape[0]],
                    strides=[1],
                    value=value,
                )


def _slices(num_rows: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yields the first row and the number of rows of each slice."""
    for start in range(0, num_rows, rows):
        yield start, min(rows, num_rows - start)


def _key(name: str) -> str:
    """Returns the key of a variable of this name, which may be the key already."""
    return name if name.endswith(VARIABLE_VALUE) else name + VARIABLE_VALUE
