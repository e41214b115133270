"""Checks that a saved policy is complete and undamaged."""

from __future__ import annotations

import os
import pathlib

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.policies.saving import saved_model
from tfrl.savers import checkpoint_files
from tfrl.specs import tensor_spec


def find_fault(path: str | os.PathLike) -> str | None:
    """Returns the fault of a policy that `PolicySaver.save` wrote, or None.

    The variables are compared with their checksums, and the file of the graph is
    parsed, without making the graph: a folder may be from somebody else.

    Args:
      path: The policy's directory.

    Returns:
      A text such as "is missing"; None if the policy has no fault.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        return "is not a directory" if path.exists() else "is missing"
    variables = path / tf.saved_model.VARIABLES_DIRECTORY
    specs = path / saved_model.POLICY_SPECS_PBTXT
    try:
        saved_model.check_files(path)
        checkpoint_files.read_whole(str(variables / tf.saved_model.VARIABLES_FILENAME))
        tensor_spec.from_pbtxt_file(str(specs))
        _check_graph(path / tf.saved_model.SAVED_MODEL_FILENAME_PB)
    except Exception as error:  # A damaged graph may raise anything.
        reason = (str(error).splitlines() or [""])[0]
        return f"is damaged ({type(error).__name__}: {reason})"
    return None


def _check_graph(path: pathlib.Path) -> None:
    graph = internals.saved_model().FromString(path.read_bytes())
    if not graph.meta_graphs:
        raise ValueError(f"{path.name} holds no graph")
