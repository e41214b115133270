"""Reads checkpoints completely, and names their variables."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.savers import checkpoint_names, finite, sliced_variables
from tfrl.system import files

# The exceptions of TensorFlow's reader; it raises an IndexError for a short data file.
READING_ERRORS = (
    tf.errors.OpError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    OSError,
    EOFError,
)

_VARIABLE = (tf.Variable, keras.Variable)
_TRAINED = (keras.Layer, keras.optimizers.Optimizer, tf.compat.v1.train.Optimizer)
VARIABLE_VALUE = sliced_variables.VARIABLE_VALUE


def repair_state(directory: str) -> None:
    """Writes the state file `checkpoint` again if it is lost, damaged or another's.

    TensorFlow's manager of a directory reads the list of checkpoints from this file,
    and raises an error if the file is damaged. It deletes the oldest of the list, which
    may therefore name only checkpoints of this directory.
    """
    state = os.path.join(directory, "checkpoint")
    with contextlib.suppress(ValueError):
        # A pipe would never end.
        is_file = os.path.isfile(state) and not os.path.islink(state)
        listed = tf.train.get_checkpoint_state(directory) if is_file else None
        if listed is not None and all(
            checkpoint_names.is_in(directory, path)
            for path in listed.all_model_checkpoint_paths
        ):
            return
    oldest_first = checkpoint_names.newest_first(directory)[::-1]
    names = [os.path.basename(path) for path in oldest_first]
    if not names:
        with contextlib.suppress(FileNotFoundError):
            os.remove(state)
        return
    # Only the order matters, but the manager forgets checkpoints without a time.
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    for i, name in enumerate(names, start=1):
        lines.append(f'all_model_checkpoint_paths: "{name}"')
        lines.append(f"all_model_checkpoint_timestamps: {i}")
    files.write_text(state, "\n".join(lines) + "\n")


def is_unfinished(path: str) -> bool:
    """Whether the save of a checkpoint that cannot be read has not come to its end.

    TensorFlow writes to a folder of this name first, and removes it last.

    Args:
      path: The checkpoint's prefix, `directory/ckpt-N`.
    """
    return os.path.isdir(f"{path}_temp")


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Removes what a save has left that was killed, or found no space on the disk.

    No other process may be saving there.
    """
    for folder in pathlib.Path(directory).glob(f"{checkpoint_names.NAME}-*_temp"):
        path = str(folder).removesuffix("_temp")
        try:
            read_whole(path)
        except READING_ERRORS:
            for file in folder.parent.glob(f"{os.path.basename(path)}.*"):
                files.remove(file)
        files.remove(folder)


def read_whole(path: str) -> Any:
    """Reads every tensor of a checkpoint, which compares each with its checksum.

    Args:
      path: The checkpoint's prefix, `directory/ckpt-N`.

    Returns:
      The `tf.train.load_checkpoint` reader.

    Raises:
      READING_ERRORS: A file is damaged, cut short or missing.
    """
    directory, prefix = os.path.split(path)
    for file in os.scandir(directory or "."):
        if file.name.startswith(f"{prefix}.") and not file.is_file():
            raise OSError(f"{file.name} is no file")  # A pipe would never end.
    reader = tf.train.load_checkpoint(path)
    _check_sizes(path, reader)
    for name in reader.get_variable_to_shape_map():
        for _ in sliced_variables.read_tensor(reader, path, name):
            pass  # A large replay buffer is read one slice at a time.
    return reader


def _check_sizes(path: str, reader: Any) -> None:
    """Raises a ValueError if the index names more bytes than the data files hold.

    TensorFlow allocates a tensor before it looks for its values, and values are not
    compressed.
    """
    directory, prefix = os.path.split(path)
    held = sum(
        file.stat().st_size
        for file in os.scandir(directory or ".")
        if file.name.startswith(f"{prefix}.data-")
    )
    dtypes = reader.get_variable_to_dtype_map()
    for name, shape in reader.get_variable_to_shape_map().items():
        named = math.prod(shape) * (dtypes[name].size or 0)
        if named > held:
            raise ValueError(
                f"the index says that {name} has {named:,} bytes, and the data files "
                f"have {held:,}"
            )


def describe_failure(path: str, error: Exception) -> str:
    """Returns a line with the checkpoint, its files with their sizes, and the error."""
    directory, prefix = os.path.split(path)
    files = [
        f"{name} ({os.path.getsize(os.path.join(directory, name)):,} bytes)"
        for name in sorted(os.listdir(directory))
        if name.startswith(f"{prefix}.")
    ]
    if not os.path.exists(f"{path}.index"):
        files.append(f"{prefix}.index (missing)")
    if not any(".data-" in name for name in files):
        files.append(f"{prefix}.data-* (missing)")
    reason = (str(error).splitlines() or [""])[0]
    if isinstance(error, IndexError):
        reason = "a data file is shorter than the index says"
    return f"  {path}: {type(error).__name__}: {reason}; files: {', '.join(files)}"


def named_variables(root: Any) -> Iterator[tuple[str, Any]]:
    """Yields the variables below `root` with their keys in a checkpoint.

    Keys are paths of attributes. The walk visits objects in the same order as
    TensorFlow does when it saves, because a variable with several paths has the first
    path as its key.

    Args:
      root: The object to save, such as a `tf.train.Checkpoint`.

    Yields:
      A key such as `agent/_q_network/bias/.ATTRIBUTES/VARIABLE_VALUE`, and the
      variable.
    """
    view = tf.train.TrackableView(root)
    paths = {id(root): ""}
    queue = collections.deque([root])
    while queue:
        parent = queue.popleft()
        path = paths[id(parent)]
        if isinstance(parent, _VARIABLE):
            yield path + VARIABLE_VALUE, parent
        for name, child in view.children(parent).items():
            if id(child) not in paths:
                escaped = name.replace(".", "..").replace("/", ".S")
                paths[id(child)] = f"{path}/{escaped}" if path else escaped
                queue.append(child)


def trained_variables(root: Any) -> dict[str, Any]:
    """Returns the floating-point variables that training changes, by their keys.

    These are all trainable variables, and all variables of agents, Keras layers and
    optimizers. Other variables hold data, such as experience and metrics, in which
    infinity may be right.

    Args:
      root: The object to save, such as a `tf.train.Checkpoint`.
    """
    trained = set()
    view = tf.train.TrackableView(root)
    seen: dict[int, bool] = {}
    queue = collections.deque([(root, False)])
    while queue:
        part, is_inside = queue.popleft()
        is_inside |= isinstance(part, _TRAINED) or hasattr(
            type(part), "train_step_counter"
        )
        # A part of an agent may have been found elsewhere before.
        if seen.get(id(part), False) or (id(part) in seen and not is_inside):
            continue
        seen[id(part)] = is_inside
        if isinstance(part, _VARIABLE) and (is_inside or part.trainable):
            trained.add(id(part))
        queue.extend((child, is_inside) for child in view.children(part).values())
    return {
        key: variable
        for key, variable in named_variables(root)
        if id(variable) in trained and finite.can_be_checked(variable)
    }


def unsaved_weights(root: Any) -> dict[str, list[str]]:
    """Returns the weights of Keras layers that TensorFlow does not save.

    TensorFlow finds the parts of an object by its attributes, but not the layers in a
    list or a dictionary that is an attribute of a Keras layer.

    Args:
      root: The object to save, such as a `tf.train.Checkpoint`.

    Returns:
      The paths of weights by the names of the innermost layers that hold them.
    """
    parts = tf.train.TrackableView(root).descendants()
    saved = {id(part) for part in parts}
    found: dict[str, list[str]] = {}
    named: set[int] = set()
    # Inner layers come after outer layers.
    for part in reversed(parts):
        if isinstance(part, keras.Layer):
            missing = [w for w in part.weights if id(w) not in saved | named]
            if missing:
                found[part.name] = [weight.path for weight in missing]
                named |= {id(weight) for weight in missing}
    return found


def not_finite(reader: Any, keys: Iterable[str]) -> list[str]:
    """Returns the keys of a checkpoint whose tensors hold NaN or infinity."""
    saved = reader.get_variable_to_shape_map()
    return [
        key
        for key in keys
        if key in saved and not np.isfinite(reader.get_tensor(key)).all()
    ]


def compare(reader: Any, root: Any) -> tuple[list[str], list[str]]:
    """Compares a checkpoint's variables with the variables of the object to restore.

    Args:
      reader: The checkpoint's reader.
      root: The object to restore.

    Returns:
      A line for each variable that was saved with another shape or dtype, and a line
      for each variable that was not saved although its part of `root` was saved.
    """
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    parts = {key.split("/")[0] for key in shapes}
    changed, absent = [], []
    for key, variable in named_variables(root):
        if key not in shapes:
            if key.split("/")[0] in parts:
                absent.append(f"  {label(key, variable)}")
            continue
        shape, dtype = tf.TensorShape(variable.shape), tf.as_dtype(variable.dtype)
        same = dtype == dtypes[key]
        if not same or not shape.is_compatible_with(shapes[key]):
            changed.append(
                f"  {label(key, variable)}: saved {dtypes[key].name} "
                f"{tuple(shapes[key])}, here {dtype.name} {tuple(shape)}"
            )
    return changed, absent


def label(key: str, variable: Any) -> str:
    """Returns the part that holds a variable, and the variable's own name."""
    part = key.split("/")[0]
    name = getattr(variable, "path", None) or variable.name.split(":")[0]
    return f"{part}, variable {name}"
