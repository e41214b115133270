"""Writes nests of specs to binary files, and reads them."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.specs import spec_proto


def save_spec(spec: Any, file_path: str) -> None:
    """Writes a nest of specs as a `StructuredValue`, making its folder if needed.

    Array specs are written as tensor specs; bounds are kept. TF-Agents can read the
    file.

    Raises:
      TypeError: If the nest holds anything but specs of dense tensors and arrays.
    """
    proto = spec_proto.to_proto(spec)
    folder = os.path.dirname(file_path)
    if folder:
        tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(file_path, "wb") as file:
        file.write(proto.SerializeToString())


def load_spec(file_path: str) -> Any:
    """Reads a nest of tensor specs from a file that `save_spec` wrote.

    A named tuple is read as a new class with the same name and fields. For example,
    `Trajectory(*load_spec(path))` converts the result to a `Trajectory`.

    Raises:
      ValueError: If the file does not hold specs, for example because it is damaged.
    """
    with tf.io.gfile.GFile(file_path, "rb") as file:
        content = file.read()
    with spec_proto.explained(file_path):
        return spec_proto.from_proto(internals.structured_value().FromString(content))
