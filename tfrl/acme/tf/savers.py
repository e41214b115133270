"""Checkpoints of training every few minutes, and snapshots of networks, as in Acme.

A `tfrl.savers.Checkpointer` writes and reads the checkpoints; the classes here decide
when, in which directory, and what a checkpoint holds of an object.
"""

from __future__ import annotations

import abc
import contextlib
import datetime
import itertools
import os
import shutil
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from tfrl.acme import core
from tfrl.compilation import internals
from tfrl.savers import (
    checkpoint_files,
    checkpoint_names,
    finite,
    input_specs,
    serialization,
    whole_checkpoints,
)
from tfrl.system import files, interrupts, paths, throttle

PythonState = tf.train.experimental.PythonState
Checkpointable = tf.Module | tf.Variable | keras.Layer | PythonState

_FIVE_DAYS = int(datetime.timedelta(days=5).total_seconds())
_NINETY_DAYS = int(datetime.timedelta(days=90).total_seconds())
_SCALAR = tf.TensorSpec((), tf.int32)

_warned: weakref.WeakSet[keras.Layer] = weakref.WeakSet()


class TFSaveable(abc.ABC):
    """An object that names the variables and modules that a checkpoint should hold."""

    @property
    @abc.abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Returns variables, modules and other trackable objects, by name."""


class SaveableAdapter(tf.train.experimental.PythonState):
    """Lets `tf.train.Checkpoint` save a `Saveable`.

    The checkpoint holds arrays and JSON, never pickles, so that reading the checkpoint
    of somebody else cannot run code.
    """

    def __init__(self, object_to_save: core.Saveable) -> None:
        """Creates an adapter.

        Args:
          object_to_save: The object whose state is saved and restored.
        """
        self._object_to_save = object_to_save

    def serialize(self) -> bytes:
        """Returns the object's state as bytes.

        Raises:
          TypeError: If the state holds a value that is not an array, a number, text or
            None; the message names its place.
        """
        return serialization.to_bytes(self._object_to_save.save())

    def deserialize(self, string_value: bytes) -> None:
        """Restores the object's state from bytes of `serialize`."""
        self._object_to_save.restore(serialization.from_bytes(string_value))


def as_trackable(thing: Any) -> Any:
    """Wraps `Saveable`s and `TFSaveable`s, so that TensorFlow can save them."""
    if isinstance(thing, core.Saveable):
        return SaveableAdapter(thing)
    if isinstance(thing, TFSaveable):
        parts = {name: as_trackable(part) for name, part in thing.state.items()}
        return tf.train.Checkpoint(**parts)
    return thing


class Checkpointer:
    """Saves objects at most every `time_delta_minutes`; restores them when created.

    It decides when to save, and in which directory. A `whole_checkpoints.Checkpointer`
    writes and reads the checkpoints, so they are complete or absent, and never hold
    weights that are not finite. Take that class if the program has a train step and
    decides itself when to save.

    ```python
    checkpointer = Checkpointer({"model": model, "optimizer": optimizer})
    for _ in range(num_steps):
        ...
        checkpointer.save()
    ```
    """

    def __init__(
        self,
        objects_to_save: Mapping[str, Any],
        *,
        directory: str | os.PathLike[str] = paths.DEFAULT_DIRECTORY,
        subdirectory: str = "default",
        time_delta_minutes: float = 10.0,
        enable_checkpointing: bool = True,
        add_uid: bool = True,
        max_to_keep: int = 1,
        checkpoint_ttl_seconds: int = _FIVE_DAYS,
        keep_checkpoint_every_n_hours: float | None = None,
    ) -> None:
        """Restores the newest checkpoint, if there is one.

        Args:
          objects_to_save: The objects by name: objects that TensorFlow can track,
            `Saveable`s and `TFSaveable`s. A Keras layer without variables is saved once
            it has them.
          directory: The directory above `<unique_id>/checkpoints/<subdirectory>`.
          subdirectory: The name of the directory of the checkpoints.
          time_delta_minutes: The least number of minutes between two checkpoints.
          enable_checkpointing: Whether anything is saved and restored.
          add_uid: Whether `system.paths.unique_id()` is part of the directory. A
            process that is started again finds its checkpoints only if the identifier
            is the same: set the environment variable `TFRL_ID`, or pass False.
          max_to_keep: The number of newest checkpoints to keep.
          checkpoint_ttl_seconds: Has no effect: nothing is deleted by age. It is
            accepted because Acme has this argument, where it has no effect either.
          keep_checkpoint_every_n_hours: The hours after which a further checkpoint is
            kept for ever; None keeps only the newest.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
          ValueError: If there is a checkpoint, but a network in `objects_to_save` has
            no variables yet, or `time_delta_minutes` is negative, or TensorFlow would
            interpret the directory as a pattern.
        """
        del checkpoint_ttl_seconds
        paths.refuse_patterns("directory", directory)
        paths.refuse_patterns("subdirectory", subdirectory)
        self._throttle = throttle.Throttle(60 * time_delta_minutes)
        self._checkpointer: whole_checkpoints.Checkpointer | None = None
        if not enable_checkpointing:
            return
        self._parts = {
            name: as_trackable(part) for name, part in objects_to_save.items()
        }
        self._checkpointer = whole_checkpoints.Checkpointer(
            paths.process_path(directory, "checkpoints", subdirectory, add_uid=add_uid),
            max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            **self._parts,
        )
        if self._checkpointer.checkpoint_exists:
            self._check_networks_built()

    @property
    def directory(self) -> str | None:
        """The directory of the checkpoints; None if checkpointing is disabled."""
        return None if self._checkpointer is None else self._checkpointer.directory

    def save(self, force: bool = False) -> bool:
        """Saves a checkpoint if `time_delta_minutes` have passed since the last.

        The first call always saves.

        Args:
          force: Whether to save in any case.

        Returns:
          Whether a checkpoint was saved; False if checkpointing is disabled.

        Raises:
          CheckpointError: If variables that training changes are not finite; nothing
            was saved.
        """
        if self._checkpointer is None or not (force or self._throttle.is_due()):
            return False
        _warn_of_unbuilt(self._parts)
        earlier = checkpoint_names.newest_first(self._checkpointer.directory)
        number = checkpoint_names.number_of(earlier[0]) + 1 if earlier else 1
        self._checkpointer.save(number)
        self._throttle.restart()
        return True

    def restore(self) -> None:
        """Restores the newest checkpoint, if there is one.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        if self._checkpointer is not None:
            self._checkpointer.initialize_or_restore()

    def _check_networks_built(self) -> None:
        """Raises an error if a network would not get its weights from the checkpoint.

        TensorFlow restores the variables of a Keras layer when the layer is built. It
        cannot do so for a network, whose variables are not named by its attributes.
        """
        for name, part in self._parts.items():
            if any(not network.built for network in _networks(part)):
                raise ValueError(
                    f"objects_to_save: {name!r} has a network without variables, "
                    f"expected one that takes its weights from {self.directory}; call "
                    "tfrl.acme.tf.utils.create_variables(network, [spec]) first, or "
                    "give the network its input spec."
                )


def _networks(part: Any) -> Iterator[Any]:
    for child in tf.train.TrackableView(part).descendants():
        if isinstance(child, internals.TracksMore):
            yield child


class CheckpointingRunner:
    """Calls `step` of an object, and saves the object every `time_delta_minutes`.

    An object without `step`, which works on its own threads, is only saved. Methods and
    attributes that the runner lacks are looked up in the object.
    """

    def __init__(
        self,
        wrapped: Any,
        key: str = "wrapped",
        *,
        time_delta_minutes: float = 30.0,
        **kwargs: Any,
    ) -> None:
        """Restores the object from the newest checkpoint, if there is one.

        Args:
          wrapped: A `Saveable`, a `TFSaveable`, or an object that TensorFlow can track.
          key: The object's name in the checkpoints.
          time_delta_minutes: The least number of minutes between two checkpoints.
          **kwargs: Further arguments of `Checkpointer`, such as `directory`.

        Raises:
          CheckpointError: If there are checkpoints, but none can be used, or their
            variables have other shapes or dtypes.
        """
        self._wrapped = wrapped
        self._checkpointer = Checkpointer(
            {key: wrapped}, time_delta_minutes=time_delta_minutes, **kwargs
        )

    def step(self) -> None:
        """Calls the object's `step`, or waits a second; saves a checkpoint if due."""
        if hasattr(self._wrapped, "step"):
            self._wrapped.step()
        else:
            time.sleep(1)
        self._checkpointer.save()

    def run(self, num_steps: int | None = None) -> None:
        """Calls `step` until a signal arrives; then saves a checkpoint.

        The signals are SIGINT, SIGTERM and SIGHUP. A second SIGINT or SIGTERM ends the
        program without saving. Only the main thread receives signals.

        Args:
          num_steps: The number of steps after which to save and return; None runs until
            a signal arrives.
        """
        steps = itertools.count() if num_steps is None else range(num_steps)
        with interrupts.requested(interrupts.SIGNALS, lambda: "a step") as is_requested:
            for _ in steps:
                self.step()
                if is_requested():
                    break
            self._checkpointer.save(force=True)

    def get_directory(self) -> str | None:
        """Returns the directory of the checkpoints."""
        return self._checkpointer.directory

    def __getattr__(self, name: str) -> Any:
        # The runner's own attributes are not looked up; they are missing while it is
        # copied.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._wrapped, name)


class Snapshotter:
    """Saves networks as SavedModels, at most every `time_delta_minutes`.

    `tf.saved_model.load(os.path.join(snapshotter.directory, name))` returns a callable
    with `variables` and `trainable_variables`, in any program that has TensorFlow:

    - `loaded(inputs)` returns the network's output for a batch of inputs. A network of
      `tfrl.networks` without a state returns its output alone; a network with a state
      is called as `loaded(inputs, state)` and returns `(output, state)`, and
      `loaded.initial_state(batch_size)` returns its first state.
    - A distribution becomes a dictionary of tensors: the distribution's parameters by
      name, and its `mean`, `mode` and `stddev` if it has them.
    """

    def __init__(
        self,
        objects_to_save: Mapping[str, Any],
        *,
        directory: str | os.PathLike[str] = paths.DEFAULT_DIRECTORY,
        time_delta_minutes: float = 30.0,
        add_uid: bool = True,
        snapshot_ttl_seconds: int = _NINETY_DAYS,
    ) -> None:
        """Creates the directory; `save` writes the snapshots.

        Args:
          objects_to_save: Networks, Keras layers and modules by name. They need
            variables, which `tfrl.acme.tf.utils.create_variables` makes; a layer
            without variables is saved once it has them. The inputs of networks have the
            networks' input specs. The inputs of other layers have the shapes `[B, ...]`
            with which the layers were built, with floats in the compute dtype; those of
            Sonnet's modules have the specs that `create_variables` got.
          directory: The directory above `<unique_id>/snapshots/<name>`.
          time_delta_minutes: The least number of minutes between two snapshots.
          add_uid: Whether `system.paths.unique_id()` is part of the directory.
          snapshot_ttl_seconds: Has no effect; it is accepted because Acme has this
            argument, where it has no effect either: nothing is deleted by age.

        Raises:
          ValueError: If `time_delta_minutes` is negative, or TensorFlow would interpret
            the directory as a pattern.
          TypeError: If an object is neither a Keras layer nor a module.
        """
        del snapshot_ttl_seconds
        paths.refuse_patterns("directory", directory)
        for name, layer in objects_to_save.items():
            paths.refuse_patterns("objects_to_save", name)
            if not isinstance(layer, keras.Layer | tf.Module):
                raise TypeError(
                    f"objects_to_save: {name!r} is a {type(layer).__name__}, expected "
                    "a Keras layer, a network or a Sonnet module; put it into "
                    "tfrl.networks.Sequential."
                )
        self._throttle = throttle.Throttle(60 * time_delta_minutes)
        self._layers = dict(objects_to_save)
        self._snapshots: dict[str, Snapshot] = {}
        self.directory = paths.process_path(directory, "snapshots", add_uid=add_uid)
        for name in self._layers:
            _repair(os.path.join(self.directory, name))

    def save(self, force: bool = False) -> bool:
        """Saves snapshots if `time_delta_minutes` have passed since the last.

        The first call always saves. When a snapshot is complete, it replaces the
        previous one.

        Args:
          force: Whether to save in any case.

        Returns:
          Whether a snapshot was saved.

        Raises:
          ValueError: If the shape of a layer's inputs is not known.
          CheckpointError: If weights are not finite. No snapshot was saved; earlier
            snapshots stay.
        """
        if not (force or self._throttle.is_due()):
            return False
        missing = _warn_of_unbuilt(self._layers)
        built = [name for name in self._layers if name not in missing]
        for name in built:
            _check_finite(name, self._layers[name])
        for name in built:
            if name not in self._snapshots:
                self._snapshots[name] = make_snapshot(self._layers[name], name)
            _save_whole(self._snapshots[name], os.path.join(self.directory, name))
        if built:
            self._throttle.restart()
        return bool(built)


class Snapshot(tf.Module):
    """The contents of a network's SavedModel: functions on tensors, and variables."""

    # These replace the properties of `tf.Module`, which SavedModels leave out.
    variables: Any = ()
    trainable_variables: Any = ()

    def __init__(self, call: Callable[..., Any]) -> None:
        """Creates a snapshot without variables.

        Args:
          call: A function. It must not be a layer, which this object would track, so
            that the SavedModel would hold the variables twice.
        """
        super().__init__()
        self._call = call

    @tf.function(autograph=False)
    def __call__(self, *inputs: Any) -> Any:
        """Returns the network's output, with distributions as dictionaries."""
        return tf.nest.map_structure(_as_tensors, self._call(*inputs))


def make_snapshot(module: Any, name: str = "module") -> Snapshot:
    """Traces a layer or network with the specs of its inputs.

    Args:
      module: The Keras layer, network or module, with variables.
      name: Its name, for errors.

    Raises:
      ValueError: If the shape of the layer's inputs is not known.
    """
    state_spec = getattr(module, "state_spec", None)
    signature = _input_signature(name, module)
    if state_spec is None:
        snapshot = Snapshot(module.__call__)
    elif tf.nest.flatten(state_spec):
        snapshot = Snapshot(lambda inputs, state: module(inputs, network_state=state))
        signature.append(_batched(state_spec))
        snapshot.initial_state = tf.function(
            module.get_initial_state, autograph=False, input_signature=[_SCALAR]
        )
    else:
        snapshot = Snapshot(lambda inputs: module(inputs)[0])
    snapshot.__call__.get_concrete_function(*signature)
    variables = _variables(module)
    snapshot.variables = [_tf_variable(v) for v in variables]
    snapshot.trainable_variables = [_tf_variable(v) for v in variables if v.trainable]
    return snapshot


def _variables(module: Any) -> list[Any]:
    found = [variable for _, variable in checkpoint_files.named_variables(module)]
    # TensorFlow does not find the layers in a list of a Keras layer; Keras does.
    weights = module.weights if isinstance(module, keras.Layer) else []
    return list({id(v): v for v in [*found, *weights]}.values())


def _tf_variable(variable: Any) -> tf.Variable:
    return variable.value if isinstance(variable, keras.Variable) else variable


def _input_signature(name: str, layer: Any) -> list[Any]:
    """Returns the nest of specs of each of a layer's inputs, `[None, ...]`."""
    spec = getattr(layer, "input_tensor_spec", None)
    if spec is not None:
        return [_batched(spec)]
    specs = input_specs.recall(layer)
    if specs is None:
        raise ValueError(
            f"objects_to_save: the shape of the inputs of {name!r} is not known, "
            "expected a layer built by tfrl.acme.tf.utils.create_variables("
            f"{name}, [spec]); call it with the layer's specs before the first save."
        )
    return list(specs)


def _batched(specs: Any) -> Any:
    return tf.nest.map_structure(
        lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype), specs
    )


def _as_tensors(output: Any) -> Any:
    """Returns a tensor unchanged, and a distribution as a dictionary of tensors."""
    import tensorflow_probability as tfp

    if not isinstance(output, tfp.distributions.Distribution):
        return output
    tensors = {
        name: _as_tensors(value)
        for name, value in output.parameters.items()
        if tf.is_tensor(value) or isinstance(value, tfp.distributions.Distribution)
    }
    for name in ("mean", "mode", "stddev"):
        with contextlib.suppress(NotImplementedError):
            tensors[name] = getattr(output, name)()
    return tensors


def _check_finite(name: str, layer: Any) -> None:
    bad = [
        getattr(weight, "path", weight.name)
        for weight in _variables(layer)
        if not finite.is_finite(weight)
    ]
    if bad:
        raise whole_checkpoints.CheckpointError(
            "objects_to_save: no snapshot was saved, because these weights of "
            f"{name!r} hold NaN or infinity: {', '.join(bad)}. Those saved before are "
            "as they were. Lower the learning rate, or look for observations and "
            "rewards that are huge or not finite."
        )


def _repair(path: str) -> None:
    """Ends a replacement that was interrupted between its two renames."""
    if os.path.isdir(f"{path}.old") and not os.path.isdir(path):
        os.rename(f"{path}.new", path)


def _save_whole(snapshot: Snapshot, path: str) -> None:
    """Writes a SavedModel next to `path`, and then moves it there."""
    new, old = f"{path}.new", f"{path}.old"
    files.remove(new)
    tf.saved_model.save(snapshot, new)
    shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, old)
    os.rename(new, path)
    shutil.rmtree(old, ignore_errors=True)


def _warn_of_unbuilt(parts: Mapping[str, Any]) -> list[str]:
    """Returns the names of layers that have no variables; warns once of each layer.

    Args:
      parts: Keras layers and other objects, by name.
    """
    missing = [
        name
        for name, part in parts.items()
        if isinstance(part, keras.Layer) and not part.built
    ]
    for name in missing:
        if parts[name] not in _warned:
            _warned.add(parts[name])
            warnings.warn(
                f"objects_to_save: {name!r} has no variables yet, so nothing of it is "
                "saved until it is built; call tfrl.acme.tf.utils.create_variables("
                f"{name}, [spec]) before saving.",
                RuntimeWarning,
                stacklevel=3,
            )
    return missing
