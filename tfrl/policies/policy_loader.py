"""Loads saved policies, and updates them with the variables of a later checkpoint."""

from __future__ import annotations

import os

import tensorflow as tf

from tfrl.policies import py_tf_eager_policy


def load(
    saved_model_path: str, checkpoint_path: str | None = None
) -> py_tf_eager_policy.SavedModelPyTFEagerPolicy:
    """Returns a saved policy, with the variables of a checkpoint if one is given.

    Args:
      saved_model_path: A directory that `PolicySaver.save` wrote.
      checkpoint_path: A directory that `PolicySaver.save_checkpoint` wrote.

    Raises:
      FileNotFoundError: There is no saved policy.
      ValueError: A file of the policy is damaged.
    """
    policy = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        saved_model_path, load_specs_from_pbtxt=True
    )
    if checkpoint_path is not None:
        policy.update_from_checkpoint(checkpoint_path)
    return policy


def materialize_saved_model(
    saved_model_path: str, checkpoint_path: str, output_path: str
) -> None:
    """Writes a saved policy that has the variables of a later checkpoint.

    Args:
      saved_model_path: A directory that `PolicySaver.save` wrote.
      checkpoint_path: A directory that `PolicySaver.save_checkpoint` wrote.
      output_path: The directory to write, which must not exist.

    Raises:
      ValueError: `output_path` exists.
    """
    if tf.io.gfile.exists(output_path):
        raise ValueError(
            f"output_path: {output_path} already exists, expected a path to create; "
            "remove it, or choose another."
        )
    tf.io.gfile.makedirs(output_path)
    _copy_dir(checkpoint_path, tf.saved_model.VARIABLES_DIRECTORY, output_path)
    _copy_dir(saved_model_path, tf.saved_model.ASSETS_DIRECTORY, output_path)
    for name in tf.io.gfile.listdir(saved_model_path):
        if not tf.io.gfile.isdir(os.path.join(saved_model_path, name)):
            _copy_file(saved_model_path, name, output_path)


def _copy_file(from_dir: str, name: str, to_dir: str) -> None:
    tf.io.gfile.copy(os.path.join(from_dir, name), os.path.join(to_dir, name))


def _copy_dir(from_dir: str, name: str, to_dir: str) -> None:
    source, target = os.path.join(from_dir, name), os.path.join(to_dir, name)
    if not tf.io.gfile.isdir(source):
        return
    tf.io.gfile.makedirs(target)
    for file_name in tf.io.gfile.listdir(source):
        _copy_file(source, file_name, target)
