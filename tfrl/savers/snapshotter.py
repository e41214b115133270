"""Saves networks as SavedModels that run without the code that made them."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from tfrl.savers import (
    checkpoint_files,
    finite,
    input_specs,
    unbuilt,
    whole_checkpoints,
)
from tfrl.system import files, paths, throttle

_NINETY_DAYS = int(datetime.timedelta(days=90).total_seconds())


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
        missing = unbuilt.warn_of(self._layers)
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


_SCALAR = tf.TensorSpec((), tf.int32)


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
