"""Names, signatures and spec files, shared by saving and loading policies."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.savers import checkpoint_files
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import mixins, nest_utils

POLICY_SPECS_PBTXT = "policy_specs.pbtxt"
_HARMLESS = ("not a valid tf.function parameter name", "Fingerprint was found, but")


def load_saved_model(model_path: str) -> Any:
    """Returns the SavedModel under `model_path`.

    Raises:
      FileNotFoundError: There is no SavedModel.
      ValueError: The SavedModel is damaged.
    """
    check_saved_model(model_path)
    try:
        with no_harmless_warnings():
            return tf.saved_model.load(model_path)
    except Exception as error:  # A damaged graph may raise anything.
        reason = (str(error).splitlines() or [""])[0]
        raise ValueError(
            f"model_path: the SavedModel in {model_path} cannot be loaded "
            f"({type(error).__name__}: {reason}), expected one that PolicySaver.save "
            "wrote; restore it from a copy, or save the policy again."
        ) from error


def check_files(path: pathlib.Path) -> None:
    """Raises an OSError unless all in a folder are files: a pipe would never end."""
    for file in path.rglob("*"):
        if not (file.is_file() or file.is_dir()):
            raise OSError(f"{file.name} is no file")


def check_saved_model(model_path: str) -> None:
    """Raises FileNotFoundError if there is no SavedModel under `model_path`."""
    if not tf.saved_model.contains_saved_model(model_path):
        raise FileNotFoundError(
            f"model_path: found no SavedModel in {model_path}, expected a directory "
            "that PolicySaver.save wrote; check the path."
        )


def for_environment(policy: Any, environment: Any) -> Any:
    """Returns a policy that was loaded for the observations of an environment.

    It is the policy itself, unless these are a dict with parts that the policy does not
    see, such as what only critics see: these are dropped, as by `TFPolicy.action`. A
    policy that was not loaded is returned unchanged.

    Args:
      policy: A policy, or the result of `tf.saved_model.load`.
      environment: The environment.

    Raises:
      ValueError: The policy was saved for other observations; TensorFlow's own error
        would only list signatures.
    """
    if not getattr(getattr(policy, "action", None), "concrete_functions", ()):
        return policy
    given, seen = environment.time_step_spec().observation, _seen(policy)
    if not (isinstance(given, Mapping) and isinstance(seen, Mapping)):
        check_observation(policy, given)
        return policy
    names = [name for name in given if name in seen]
    check_observation(policy, {name: given[name] for name in names})
    return policy if len(names) == len(given) else _OfParts(policy, names)


class _OfParts(mixins.Forwards):
    """A policy that was loaded, which sees some parts of observations."""

    _forwards_to = "_policy"

    def __init__(self, policy: Any, names: Sequence[str]) -> None:
        self._policy, self._names = policy, names

    def action(self, time_step: Any, *arguments: Any, **keywords: Any) -> Any:
        """Returns the policy's step for a time step with further parts."""
        observation = {name: time_step.observation[name] for name in self._names}
        seen = time_step._replace(observation=observation)
        return self._policy.action(seen, *arguments, **keywords)


def check_observation(policy: Any, observation: Any, *, batched: bool = False) -> None:
    """Checks that a policy that was loaded takes an observation.

    Args:
      policy: The result of `tf.saved_model.load`.
      observation: The observation, or its spec.
      batched: Whether its shapes begin with the dimension of a batch.

    Raises:
      ValueError: The policy was saved for other observations.
    """
    expected = _described(_seen(policy), 1)
    got = _described(observation, int(batched))
    if expected != got:
        raise ValueError(
            f"policy: it was saved for observations {expected}, got an environment "
            f"with {got}; give the environment that the policy was trained in, with "
            "the same wrappers, or the policy of this environment."
        )


def _seen(policy: Any) -> Any:
    """Returns the specs of the observations that a loaded policy takes, `[B, ...]`."""
    arguments, _ = policy.action.concrete_functions[0].structured_input_signature
    return arguments[0].observation


def _described(nest: Any, outer_dims: int) -> str:
    """Returns the paths, dtypes and shapes of specs or tensors, as text."""
    return ", ".join(
        f"{path} {tf.as_dtype(leaf.dtype).name}{list(leaf.shape)[outer_dims:]}".strip()
        for path, leaf in nest_utils.flatten_with_joined_paths(nest)
    )


def load_specs(model_path: str) -> dict[str, Any]:
    """Returns the specs saved with a policy; see `specs_from_collect_data_spec`.

    Raises:
      FileNotFoundError: The file is missing.
    """
    path = os.path.join(model_path, POLICY_SPECS_PBTXT)
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(
            f"model_path: found no {POLICY_SPECS_PBTXT} in {model_path}, expected the "
            "file that PolicySaver.save writes last; save the policy again, or give "
            "the specs."
        )
    return specs_from_collect_data_spec(tensor_spec.from_pbtxt_file(path))


def specs_from_collect_data_spec(loaded_policy_specs: Any) -> dict[str, Any]:
    """Returns a policy's array specs from the specs that `PolicySaver` wrote.

    Args:
      loaded_policy_specs: A dict with `collect_data_spec` and `policy_state_spec`.

    Returns:
      A dict with `collect_data_spec`, `time_step_spec`, `action_spec`,
      `policy_state_spec` and `info_spec`.
    """
    specs = tensor_spec.to_nest_array_spec(loaded_policy_specs)
    collect_data_spec = specs["collect_data_spec"]
    return {
        "collect_data_spec": collect_data_spec,
        "time_step_spec": ts.TimeStep(
            step_type=collect_data_spec.step_type,
            reward=collect_data_spec.reward,
            discount=collect_data_spec.discount,
            observation=collect_data_spec.observation,
        ),
        "action_spec": collect_data_spec.action,
        "policy_state_spec": specs["policy_state_spec"],
        "info_spec": collect_data_spec.policy_info,
    }


def rename_spec_with_nest_paths(spec: types.NestedTensorSpec) -> Any:
    """Returns plain specs, each named by its path in the nest, such as `0/reward`."""
    return tf.nest.pack_sequence_as(
        spec,
        [
            # TensorFlow refuses the empty name, which is the path of a single spec.
            tf.TensorSpec(leaf.shape, leaf.dtype, name=path or "value")
            for path, leaf in nest_utils.flatten_with_joined_paths(spec)
        ],
    )


def check_spec_names(spec: types.NestedTensorSpec) -> Any:
    """Returns plain specs with the names they have.

    Raises:
      ValueError: A name is missing, or two are the same.
    """
    names = [leaf.name for leaf in tf.nest.flatten(spec)]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            "use_nest_path_signatures=False: specs contain a missing name or a name "
            f"collision, got the names {names}, expected unique ones; name the specs, "
            "or let the signatures be named by paths."
        )
    return tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype, name=leaf.name), spec
    )


def name_unnamed_specs(spec: types.NestedTensorSpec, default: str) -> Any:
    """Returns plain specs, named by their path where they have no name."""
    return tf.nest.pack_sequence_as(
        spec,
        [
            tf.TensorSpec(leaf.shape, leaf.dtype, name=leaf.name or path or default)
            for path, leaf in nest_utils.flatten_with_joined_paths(spec)
        ],
    )


def names_of(spec: types.NestedTensorSpec) -> list[str]:
    """Returns the names of the specs in the nest, in order."""
    return [leaf.name for leaf in tf.nest.flatten(spec)]


def add_outer_dims(spec: Any, outer_dims: Sequence[int | None]) -> Any:
    """Returns plain specs of the same names with `outer_dims` before their shapes."""
    return tf.nest.map_structure(lambda leaf: add_batch_dim(leaf, outer_dims), spec)


def add_batch_dim(spec: tf.TensorSpec, outer_dims: Sequence[int | None]) -> Any:
    """Returns a plain spec of the same name with `outer_dims` before its shape."""
    shape = tf.TensorShape(outer_dims).concatenate(spec.shape)
    return tf.TensorSpec(shape, spec.dtype, name=spec.name)


def function_with_flat_signature(
    function: Callable[..., Any], input_specs: Sequence[Any], output_names: list[str]
) -> Any:
    """Returns a `tf.function` of tensors named by their specs, which returns a dict.

    Args:
      function: Takes one nest for each of `input_specs`.
      input_specs: Nests of named specs.
      output_names: Names of the tensors in the nest that `function` returns.
    """

    @tf.function(input_signature=tf.nest.flatten(input_specs), autograph=False)
    def function_with_signature(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = function(*tf.nest.pack_sequence_as(input_specs, inputs))
        return dict(zip(output_names, tf.nest.flatten(outputs), strict=True))

    return function_with_signature


def fresh_seed() -> tf.Tensor:
    """Draws a stateless seed, int64 `[2]`, from entropy of the process that runs it.

    A public random op would freeze the global seed of the process that traces it into
    the graph.
    """
    return tf.raw_ops.RandomUniformInt(
        shape=[2],
        minval=tf.constant(tf.int64.min, tf.int64),
        maxval=tf.constant(tf.int64.max, tf.int64),
    )


def captures_other_resources(function: Any) -> bool:
    """Whether a concrete function uses resources that are not its variables."""
    known = {id(variable.handle) for variable in function.variables}
    return any(
        tensor.dtype == tf.resource and id(tensor) not in known
        for tensor in function.captured_inputs
    )


@contextlib.contextmanager
def no_harmless_warnings() -> Iterator[None]:
    """Silences what TensorFlow logs of names of signatures, and of fingerprints.

    Each name has a '/', and a damaged fingerprint, which is of no use here, is logged
    with a traceback.
    """

    def is_other(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return not any(words in text for words in _HARMLESS)

    logger = logging.getLogger("absl")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


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
    specs = path / POLICY_SPECS_PBTXT
    try:
        check_files(path)
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
