"""Helpers for nests of tensors and for the variables of networks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl.acme.tf import savers
from tfrl.networks import layer_utils
from tfrl.networks.utils import batch_concat as batch_concat
from tfrl.savers import input_specs
from tfrl.system import paths
from tfrl.utils import common, nest_utils


def add_batch_dim(nest: Any) -> Any:
    """Returns the tensors or arrays of a nest with a first dimension of size 1."""
    return tf.nest.map_structure(lambda leaf: tf.expand_dims(leaf, axis=0), nest)


def squeeze_batch_dim(nest: Any) -> Any:
    """Returns the tensors of a nest without their first dimension, of size 1."""
    return tf.nest.map_structure(lambda leaf: tf.squeeze(leaf, axis=0), nest)


def batch_to_sequence(data: Any) -> Any:
    """Swaps the first two dimensions of each tensor: `[B, T, ...]` to `[T, B, ...]`."""
    return tf.nest.map_structure(common.transpose_batch_time, data)


def tile_tensor(tensor: tf.Tensor, multiple: int) -> tf.Tensor:
    """Returns `multiple` copies of a tensor along a new first dimension."""
    return tf.repeat(tf.expand_dims(tensor, axis=0), multiple, axis=0)


def tile_nested(inputs: Any, multiple: int) -> Any:
    """Returns a nest with `multiple` copies of each tensor; see `tile_tensor`."""
    return tf.nest.map_structure(lambda leaf: tile_tensor(leaf, multiple), inputs)


def zeros_like(nest: Any) -> Any:
    """Returns tensors of zeros like the specs, arrays or tensors of a nest."""
    return tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), nest)


def to_numpy(nest: Any) -> Any:
    """Returns the tensors of a nest as NumPy arrays."""
    return tf.nest.map_structure(np.asarray, nest)


def to_numpy_squeeze(nest: Any, axis: int = 0) -> Any:
    """Returns the tensors of a nest as NumPy arrays without the dimension `axis`.

    Raises:
      ValueError: If the dimension of a tensor does not have size 1.
    """
    return tf.nest.map_structure(lambda x: np.squeeze(np.asarray(x), axis), nest)


def stack_sequence_fields(sequence: Sequence[Any]) -> Any:
    """Stacks a sequence of nests of arrays into one nest, along a new first axis."""
    return nest_utils.stack_nested_arrays(sequence)


def create_variables(network: Any, input_spec: Any) -> Any:
    """Makes the variables of a network or Keras layer by applying it to zeros.

    Args:
      network: A `Network`, a Keras layer, or a module of Sonnet.
      input_spec: The specs of the inputs without a batch dimension, of tensors, arrays
        or dm_env: a list with one nest of specs, or with two for a critic,
        `[observation_spec, action_spec]`; or a single nest that is not a list.

    Returns:
      The nest of specs of the outputs without a batch dimension. It holds None for an
      output that is not a tensor, such as a distribution. For a recurrent core of
      Sonnet, the pair of this and of the specs of its state. A module of Sonnet then
      finds the variables of Keras layers in it, too.
    """
    specs = tf.nest.map_structure(
        lambda spec: tf.TensorSpec(spec.shape, spec.dtype),
        input_spec if isinstance(input_spec, list) else [input_spec],
    )
    if hasattr(network, "create_variables"):
        outputs = network.create_variables(
            specs[0] if len(specs) == 1 else tuple(specs)
        )
        return tf.nest.map_structure(
            lambda leaf: leaf if isinstance(leaf, tf.TensorSpec) else None, outputs
        )
    inputs = tuple(add_batch_dim(zeros_like(spec)) for spec in specs)
    if isinstance(network, tf.Module) and hasattr(network, "initial_state"):
        inputs = (*inputs, network.initial_state(1))
    outputs = network(*inputs)
    if isinstance(network, tf.Module):
        layer_utils.adopt_layers(network)
    if isinstance(network, keras.Layer | tf.Module):
        input_specs.remember(network, inputs)
    return tf.nest.map_structure(_unbatched_spec, outputs)


def _unbatched_spec(output: Any) -> tf.TensorSpec | None:
    if not tf.is_tensor(output):
        return None
    return tf.TensorSpec(output.shape[1:], output.dtype)


class TransformationWrapper(tf.Module):
    """A function as a module, which has no variables."""

    def __init__(
        self, transformation: Callable[..., Any], name: str | None = None
    ) -> None:
        """Takes a function of nests of tensors, which returns a nest of tensors."""
        super().__init__(name=name)
        self._transformation = transformation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function."""
        return self._transformation(*args, **kwargs)


def to_sonnet_module(transformation: Callable[..., Any]) -> Any:
    """Returns a function in a `TransformationWrapper`; modules and layers unchanged."""
    if isinstance(transformation, keras.Layer | tf.Module):
        return transformation
    return TransformationWrapper(transformation)


class Checkpointer:
    """Saves checkpoints of some objects and snapshots of others.

    It is a `savers.Checkpointer` and a `savers.Snapshotter` with one `save`.
    """

    def __init__(
        self,
        objects_to_save: Mapping[str, Any],
        objects_to_snapshot: Mapping[str, Any] | None = None,
        *,
        directory: str | os.PathLike[str] = paths.DEFAULT_DIRECTORY,
        add_uid: bool = True,
        snapshot_time_delta_minutes: float = 30.0,
        **kwargs: Any,
    ) -> None:
        """Restores the newest checkpoint, if there is one.

        Args:
          objects_to_save: The objects in the checkpoints, by name.
          objects_to_snapshot: The networks to save as SavedModels, by name.
          directory: The directory of both.
          add_uid: Whether `system.paths.unique_id()` is part of the directory.
          snapshot_time_delta_minutes: The least number of minutes between two
            snapshots.
          **kwargs: Further arguments of `savers.Checkpointer`, such as
            `time_delta_minutes`.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        self.checkpointer = savers.Checkpointer(
            objects_to_save, directory=directory, add_uid=add_uid, **kwargs
        )
        self.snapshotter = savers.Snapshotter(
            objects_to_snapshot or {},
            directory=directory,
            add_uid=add_uid,
            time_delta_minutes=snapshot_time_delta_minutes,
        )

    def save(self, force: bool = False) -> bool:
        """Saves a checkpoint and snapshots, each if it is due.

        Args:
          force: Whether to save even if neither is due.

        Returns:
          Whether anything was saved.

        Raises:
          CheckpointError: If variables that training changes are not finite; nothing
            was saved.
        """
        saved_checkpoint = self.checkpointer.save(force)
        return self.snapshotter.save(force) or saved_checkpoint
