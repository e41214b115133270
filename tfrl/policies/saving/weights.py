"""Reads the weights of saved policies, as arrays.

A SavedModel is a program: loading it may run anything that its author wrote into it.
Its variables are a checkpoint, of arrays alone, which a policy that is built by its
recipe takes instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.policies import tf_policy
from tfrl.savers import checkpoint_files
from tfrl.system import log
from tfrl.utils import variables

_CHILD = "model_variables"  # Where `PolicySaver` lists the policy's variables.
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # TensorFlow's description of the objects.


def load(policy: tf_policy.TFPolicy, path: str | os.PathLike) -> None:
    """Sets a policy's variables to those of a policy that `PolicySaver` saved.

    Nothing of the SavedModel's graph is read.

    Args:
      policy: The policy; all or none of its variables change.
      path: The folder of the saved policy.

    Raises:
      ValueError: The variables cannot be read, or belong to another policy.
    """
    own = _variables_of(policy)
    try:
        reader = checkpoint_files.read_whole(_prefix(path))
        difference = _difference(reader, own)
        indices = [] if difference else range(len(own))
        values = [reader.get_tensor(_key(i)) for i in indices]
    except checkpoint_files.READING_ERRORS as error:
        reason = log.plain((str(error).splitlines() or [""])[0])
        raise ValueError(
            f"path: the weights of the policy in {os.fspath(path)!r} cannot be used "
            f"({reason}); restore the folder from a copy."
        ) from error
    if difference:
        raise ValueError(
            f"path: the weights in {os.fspath(path)!r} belong to another policy "
            f"({difference}), one for other observations or actions, or of other "
            "settings; build it with its own."
        )
    for variable, value in zip(own, values, strict=True):
        variable.assign(value)


@contextlib.contextmanager
def borrowed(policy: tf_policy.TFPolicy, path: str | os.PathLike) -> Iterator[None]:
    """Gives a policy the weights of a saved one, and later its own again.

    Args:
      policy: The policy.
      path: The folder of the saved policy; see `load`.

    Raises:
      ValueError: See `load`.
    """
    own = _variables_of(policy)
    values = [tf.convert_to_tensor(variable) for variable in own]
    load(policy, path)
    try:
        yield
    finally:
        for variable, value in zip(own, values, strict=True):
            variable.assign(value)


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Returns the variables of a saved policy by their names, in alphabetical order.

    Args:
      path: The folder of the saved policy.

    Raises:
      ValueError: The variables cannot be read.
    """
    try:
        reader = checkpoint_files.read_whole(_prefix(path))
        names = sorted(reader.get_variable_to_shape_map())
        return {
            name.removesuffix(checkpoint_files.VARIABLE_VALUE): reader.get_tensor(name)
            for name in names
            if name != _GRAPH
        }
    except checkpoint_files.READING_ERRORS as error:
        reason = log.plain((str(error).splitlines() or [""])[0])
        raise ValueError(
            f"path: the weights of the policy in {os.fspath(path)!r} cannot be read "
            f"({reason}); restore the folder from a copy."
        ) from error


def checksum(values: Mapping[str, np.ndarray]) -> str:
    """Returns a checksum of the bits of some variables, in their order."""
    digest = hashlib.sha256()
    for value in values.values():
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]


def _prefix(path: str | os.PathLike) -> str:
    names = tf.saved_model.VARIABLES_DIRECTORY, tf.saved_model.VARIABLES_FILENAME
    return os.path.join(path, *names)


def _variables_of(policy: tf_policy.TFPolicy) -> list[Any]:
    return list(variables.as_tf_variables(policy.variables()))


def _key(number: int) -> str:
    return f"{_CHILD}/{number}{checkpoint_files.VARIABLE_VALUE}"


def _difference(reader: Any, own: list[Any]) -> str:
    """Says how a checkpoint's variables differ from those of a policy; "" if not."""
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    count = sum(key.startswith(f"{_CHILD}/") for key in shapes)
    if count != len(own):
        return f"it has {count} variables, and the recipe's {len(own)}"
    for i, variable in enumerate(own):
        key = _key(i)
        here = f"{variable.dtype.name} {variable.shape.as_list()}"
        saved = f"{dtypes[key].name} {list(shapes[key])}" if key in shapes else "none"
        if saved != here:
            name = variable.name.split(":")[0]
            return f"variable {name}: saved {saved}, the recipe's {here}"
    return ""
