"""Gives an agent the weights of an earlier run, to train them further in a new run."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import keras
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.networks import network
from tfrl.savers import checkpoint_files, whole_checkpoints
from tfrl.train.runs import run_files
from tfrl.utils import variables
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer

_OPTIMIZERS = (keras.optimizers.Optimizer, tf.compat.v1.train.Optimizer)


def load_weights(agent: tf_agent.TFAgent, initial_run: str | os.PathLike) -> str:
    """Loads the weights of an earlier run into an agent for a new run.

    These are the weights of all networks and their targets, the statistics of the
    normalizers, and trained numbers such as SAC's temperature, from the run's last good
    checkpoint. The agent keeps its optimizers, with their learning rates, and its train
    step counter, so that its schedules begin again. It must have the networks and the
    normalizers of the earlier run's agent; another environment, with specs of the same
    shapes, and other settings are fine.

    Call it after `agent.initialize()`. A `Run` that is resumed restores its own
    checkpoint, which replaces the loaded weights.

    Args:
      agent: The agent; all or none of its variables change.
      initial_run: The folder of the earlier run, or of a `Learner`'s checkpoints.

    Returns:
      The path of the checkpoint.

    Raises:
      FileNotFoundError: The folder has no checkpoint.
      CheckpointError: Its checkpoints cannot be read, or their agent had other
        variables; the error lists these variables.
    """
    run = pathlib.Path(initial_run)
    run_files.check_links(run)
    folder = run / "checkpoints"
    root = tf.train.Checkpoint(agent=agent)
    ours = dict(checkpoint_files.named_variables(root))
    weights = _weights(agent, ours)

    def load(path: str, reader: Any) -> None:
        _check_same(path, reader, ours, weights, run)
        values = {key: reader.get_tensor(key) for key in weights}
        for key, value in values.items():
            variables.as_tf_variable(weights[key]).assign(value)

    if not folder.is_dir():
        folder = run
    path = None
    if folder.is_dir():
        path = whole_checkpoints.use_latest(folder, load, weights)
    if path is None:
        raise FileNotFoundError(
            f"initial_run: got {str(run)!r}, where there is no checkpoint, expected "
            "the folder of an earlier run, which has its checkpoints in checkpoints/."
        )
    return path


def _weights(agent: tf_agent.TFAgent, ours: dict[str, Any]) -> dict[str, Any]:
    """Returns the variables of `ours` that are loaded, by their keys.

    These are the floating-point variables that no optimizer holds, and the counts of
    all normalizers, those of RND and of networks' layers, too; other integers are
    counters, seeds and the states of generators. The current returns of a reward
    normalizer belong to episodes of the earlier run.
    """
    parts = list(tf.train.TrackableView(agent).descendants())
    left_out = {
        id(variable)
        for part in parts
        if isinstance(part, _OPTIMIZERS)
        for variable in (
            part.variables() if callable(part.variables) else part.variables
        )
    }
    statistics = set()
    for part in parts:
        if isinstance(part, TensorNormalizer | RewardNormalizer):
            statistics |= {id(v) for v in variables.tracked_variables(part)}
        if isinstance(part, network.Network):
            # The states of generators are not among the weights.
            statistics |= {id(v) for v in part.weights if v.dtype == "int64"}
        if isinstance(part, RewardNormalizer):
            left_out.add(id(part.returns))
    return {
        key: variable
        for key, variable in ours.items()
        if id(variable) not in left_out
        and (tf.as_dtype(variable.dtype).is_floating or id(variable) in statistics)
    }


def _check_same(
    path: str,
    reader: Any,
    ours: dict[str, Any],
    weights: dict[str, Any],
    run: pathlib.Path,
) -> None:
    """Raises a CheckpointError unless a checkpoint has exactly the agent's weights."""
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    lines = []
    for key, variable in weights.items():
        here = f"{tf.as_dtype(variable.dtype).name} {tuple(variable.shape)}"
        saved = f"{dtypes[key].name} {tuple(shapes[key])}" if key in shapes else "none"
        if saved != here:
            label = checkpoint_files.label(key, variable)
            lines.append(f"  {label}: saved {saved}, here {here}")
    for key in sorted(shapes.keys() - ours.keys()):
        is_weight = key.startswith("agent/") and "optimizer" not in key
        if is_weight and dtypes[key].is_floating:
            name = key.removesuffix(checkpoint_files.VARIABLE_VALUE)
            saved = f"{dtypes[key].name} {tuple(shapes[key])}"
            lines.append(f"  {name}: saved {saved}, here none")
    if lines:
        raise whole_checkpoints.CheckpointError(
            f"checkpoint {path}: the agent of {str(run)!r} had other weights than "
            f"this one:\n{whole_checkpoints.shortened(lines)}\n"
            "Give this agent the networks and normalizers of that run, and an "
            f"environment with specs of the same shapes; its settings are in "
            f"{run / 'config.json'}."
        )
