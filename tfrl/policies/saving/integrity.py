"""Checks that a saved policy is complete and undamaged."""

from __future__ import annotations

import os
import pathlib

import tensorflow as tf

from tfrl.policies.saving import saved_model
from tfrl.savers import checkpoint_files
from tfrl.specs import tensor_spec


def find_fault(path: str | os.PathLike) -> str | None:
    """Returns the fault of a policy that `PolicySaver.save` wrote, or None.

    The variables are compared with their checksums, and the SavedModel is loaded.

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
        checkpoint_files.read_whole(str(variables / tf.saved_model.VARIABLES_FILENAME))
        tensor_spec.from_pbtxt_file(str(specs))
        tf.saved_model.load(str(path))
    except Exception as error:  # A damaged graph may raise anything.
        reason = (str(error).splitlines() or [""])[0]
        return f"is damaged ({type(error).__name__}: {reason})"
    return None
