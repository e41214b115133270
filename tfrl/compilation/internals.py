"""Looks up the private names of TensorFlow, Keras and Gymnasium that `tfrl` uses.

A private name may be gone in the next release. So each name is looked up when it is
used, not when a module is imported, and only through `look_up`. If a name is missing,

- code that only saves time takes the public, slower way;
- code that has a public way to nearly the same result takes that way;
- a feature that needs the name raises a `MissingNameError`.

Training a DQN in a plain loop works even if all of these names are missing.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class _Lazily:
    """A module that is imported when its first attribute is used.

    Environment workers use this file, and must not import TensorFlow.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


if not TYPE_CHECKING:
    keras, tf = _Lazily("keras"), _Lazily("tensorflow")

# The releases that the tests run with; pyproject.toml requires the same.
SUPPORTED = "tensorflow>=2.21,<2.22 and keras>=3.13.2,<3.16"

# Names that other modules look up or override themselves.
XLA_FFI_API = "_ZN3xla3ffi12GetXlaFfiApiEv"
SLICE_ASSIGN = "_strided_slice_assign"

_XLA_OPS = "tensorflow.compiler.tf2xla.ops.gen_xla_ops"
_CONTROL_FLOW = "tensorflow.python.ops.control_flow_util"
_CONTROL_DEPS = "tensorflow.python.framework.auto_control_deps_utils"
_OPS = "tensorflow.python.framework.ops"
_CONSTANTS = "tensorflow.python.framework.constant_op"
_CONTEXT = "tensorflow.python.eager.context"
_TAPE = "tensorflow.python.eager.tape"
_PFOR = "tensorflow.python.ops.parallel_for.pfor"
_PY_FUNCTIONS = "tensorflow.python.ops.script_ops"
_PROTOS = "tensorflow.core.protobuf.struct_pb2"
_SAVED_MODELS = "tensorflow.core.protobuf.saved_model_pb2"
_OBJECTS = "tensorflow.core.protobuf.trackable_object_graph_pb2"
_REGISTRATION = "tensorflow.python.saved_model.registration"
_AUTOGRAPH = "tensorflow.python.autograph.core.config"
_OPERATIONS = "tensorflow.python.framework.op_def_registry"
_SESSION = "tensorflow.python.client.pywrap_tf_session"
_MISSING = (ImportError, AttributeError)


class MissingNameError(NotImplementedError):
    """A feature needs a private name that the installed releases do not have."""


def explanation(feature: str, name: str, remedy: str) -> str:
    """Returns the text of a `MissingNameError`.

    Args:
      feature: The feature that the caller asked for.
      name: The private name.
      remedy: The alternative for users who keep the installed releases.
    """
    return (
        f"{feature}: needs {name}, a private name that TensorFlow {tf.__version__} and "
        f"Keras {keras.__version__} do not have, expected {SUPPORTED}; install those, "
        f"or {remedy}."
    )


def look_up(owner: Any, name: str) -> Any:
    """Returns a private attribute.

    Args:
      owner: An object, or the dotted name of a module.
      name: The attribute's name.

    Raises:
      AttributeError: If there is no such attribute.
      ImportError: If there is no such module.
    """
    if isinstance(owner, str):
        owner = importlib.import_module(owner)
    return getattr(owner, name)


def change_class(thing: Any, kind: type) -> None:
    """Changes the class of a TensorFlow object to a subclass of its class.

    Raises:
      TypeError: If Python does not allow the change.
    """
    # Bypasses the attribute tracking of tf.Module.
    object.__setattr__(thing, "__class__", kind)


def _needed(owner: Any, name: str, feature: str, remedy: str) -> Any:
    """Returns a private attribute, or raises a `MissingNameError`."""
    try:
        return look_up(owner, name)
    except _MISSING:
        path = f"{owner if isinstance(owner, str) else type(owner).__name__}.{name}"
        raise MissingNameError(explanation(feature, path, remedy)) from None


# --- The list of the names, and whether they are available.


def available() -> dict[str, bool]:
    """Returns for each private name whether the installed releases have it."""
    return {name: is_available(name) for name in NAMES}


def is_available(name: str) -> bool:
    """Whether the installed releases have one of `NAMES`."""
    try:
        look_up(NAMES[name](), name)
    except _MISSING:
        return False
    return True


def _eager_context() -> Any:
    return look_up(_CONTEXT, "context")()


@functools.cache
def _function() -> Any:
    return tf.function(lambda: tf.constant(0))


@functools.cache
def _adam() -> keras.optimizers.Adam:
    adam = keras.optimizers.Adam()
    adam.build([keras.Variable(0.0)])
    return adam


def _atari_preprocessing() -> Any:
    return importlib.import_module("gymnasium.wrappers").AtariPreprocessing


# By private name: a function that returns the name's owner, which is an object, or the
# dotted name of a module.
NAMES: dict[str, Callable[[], Any]] = {
    "GraphOrParentsInXlaContext": lambda: _CONTROL_FLOW,
    "CONVERSION_RULES": lambda: _AUTOGRAPH,
    "DoNotConvert": lambda: _AUTOGRAPH,
    "xla_call_module": lambda: _XLA_OPS,
    "xla_optimization_barrier": lambda: _XLA_OPS,
    "TF_GetXlaConstantFoldingDisabled": lambda: _SESSION,
    "uid": lambda: _OPS,
    "get_read_only_resource_input_indices_graph": lambda: _CONTROL_DEPS,
    "variable_accessed": lambda: _TAPE,
    "_gradient_registry": lambda: _OPS,
    "_pfor_converter_registry": lambda: _PFOR,
    "wrap": lambda: _PFOR,
    "register_checkpoint_saver": lambda: _REGISTRATION,
    "_function_captures": lambda: _function(),
    "_function_type": lambda: _function(),
    "_default_values": lambda: _function(),
    "_list_all_concrete_functions": lambda: _function(),
    "_call_flat": lambda: _function().get_concrete_function(),
    "convert_to_eager_tensor": lambda: _CONSTANTS,
    "context_safe": lambda: _CONTEXT,
    "_initialized": lambda: _eager_context(),
    "_py_funcs": lambda: _PY_FUNCTIONS,
    "EagerFunc": lambda: _PY_FUNCTIONS,
    "StructuredValue": lambda: _PROTOS,
    "SavedModel": lambda: _SAVED_MODELS,
    "TrackableObjectGraph": lambda: _OBJECTS,
    "_unbatch": lambda: tf.RaggedTensorSpec,
    "_create_slots": lambda: tf.compat.v1.train.Optimizer,
    "_get_variable_index": _adam,
    "_momentums": _adam,
    "_velocities": _adam,
    "_trainable_variables": _adam,
    "_learning_rate": _adam,
    "_flatten_layers": lambda: keras.layers.Layer,
    "_trackable_children": lambda: keras.layers.Layer,
    "_output_shape": lambda: keras.layers.Lambda(lambda x: x),
    "_get_obs": _atari_preprocessing,
}


# --- AutoGraph.


def leave_unconverted(modules: Iterable[str]) -> None:
    """Makes AutoGraph call functions of modules unconverted, as it does TensorFlow's.

    Args:
      modules: Dotted names of modules, and of packages for all modules in them.
    """
    try:
        rules = look_up(_AUTOGRAPH, "CONVERSION_RULES")
        rule = look_up(_AUTOGRAPH, "DoNotConvert")
    except _MISSING:
        return
    config: Any = importlib.import_module(_AUTOGRAPH)
    config.CONVERSION_RULES = (*map(rule, modules), *rules)


# --- Calls to Python from graphs.


def register_py_function(function: Callable[..., Sequence[Any] | None]) -> Any:
    """Registers a function for the operation `PyFunc`, without its conversions.

    `tf.numpy_function` checks the version of NumPy with regular expressions for each
    result of each call, which takes longer than a step of a small environment.

    Args:
      function: A function of arrays that returns arrays or numbers.

    Returns:
      An object and its token, an input of the operation. TensorFlow keeps no reference
      to the object, which must live as long as the operation is used. None if the
      installed releases do not have the names that this needs.
    """
    try:
        registry = look_up(_PY_FUNCTIONS, "_py_funcs")
        registered = _registered_class()(function)
    except _MISSING:
        return None
    return registered, registry.insert(registered)


@functools.cache
def _registered_class() -> Any:
    """Returns a class whose objects the registry calls without conversions."""
    kind: Any = look_up(_PY_FUNCTIONS, "EagerFunc")

    class Registered(kind):
        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function, [], is_grad_func=False)
            self._function = function

        @override
        def __call__(self, device: Any, token: Any, arrays: Sequence[Any]) -> Any:
            results = self._function(*arrays)
            if results is None:
                return []
            if not isinstance(results, (list, tuple)):
                results = [results]
            return [_as_contiguous(result) for result in results]

    return Registered


def _as_contiguous(result: Any) -> Any:
    """Returns a contiguous array; of Python objects for text, as TensorFlow needs."""
    array = np.asarray(result, order="C")
    if array.dtype.kind in "SU":
        return look_up(_PY_FUNCTIONS, "_py_funcs")._convert(result)
    return array


# --- Graphs that XLA compiles.


def has_made_devices() -> bool:
    """Whether TensorFlow has made its logical devices, as for a first operation."""
    try:
        context = look_up(_CONTEXT, "context_safe")()
        return context is not None and bool(look_up(context, "_initialized"))
    except _MISSING:
        return True


def is_stateful(operation: str) -> bool:
    """Whether operations of a type are stateful; False if TensorFlow does not say."""
    try:
        found = look_up(_OPERATIONS, "get")(operation)
        return found is not None and bool(found.is_stateful)
    except _MISSING:
        return False


def read_xla_flags() -> bool:
    """Makes TensorFlow read `TF_XLA_FLAGS` now; returns whether it has read them."""
    try:
        # Any flag will do: TensorFlow reads them all at once, and only once.
        look_up(_SESSION, "TF_GetXlaConstantFoldingDisabled")()
    except _MISSING:
        return False
    return True


def number_functions(number: Callable[[Callable[[], int]], int]) -> bool:
    """Chooses the numbers in the names of the functions that TensorFlow will trace.

    Args:
      number: Returns a number that is unique in this process. Its argument is
        TensorFlow's own numbering.

    Returns:
      Whether the installed release has the name that this needs.
    """
    try:
        original = look_up(_OPS, "uid")
    except _MISSING:
        return False
    ops: Any = importlib.import_module(_OPS)
    ops.uid = functools.partial(number, original)
    return True


_own_numbers = itertools.count()


def next_number() -> int:
    """Returns a number that is unique in this process, see `number_functions`."""
    try:
        return int(look_up(_OPS, "uid")())
    except _MISSING:
        return next(_own_numbers)


def is_xla_graph(graph: tf.Graph) -> bool:
    """Whether XLA compiles a graph or a graph around it; False if this is unknown."""
    try:
        look = look_up(_CONTROL_FLOW, "GraphOrParentsInXlaContext")
    except _MISSING:
        return False
    return bool(look(graph))


def obstacle_to_xla() -> str | None:
    """Returns why the installed releases cannot compile loops; None if they can."""
    name = "GraphOrParentsInXlaContext"
    if is_available(name):
        return None
    path = f"{_CONTROL_FLOW}.{name}"
    return explanation("jit_compile", path, "leave jit_compile=False")


def check_xla_call_module() -> None:
    """Raises a `MissingNameError` if there is no operation `XlaCallModule`."""
    remedy = "do not compile loops over Python environments"
    _needed(_XLA_OPS, "xla_call_module", "host_call", remedy)


def xla_call_module(*args: Any, **kwargs: Any) -> list[tf.Tensor]:
    """Calls the operation `XlaCallModule`, which `tf.raw_ops` does not list."""
    check_xla_call_module()
    return look_up(_XLA_OPS, "xla_call_module")(*args, **kwargs)


def xla_optimization_barrier(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Calls `XlaOptimizationBarrier`, or returns the tensors if it is missing."""
    try:
        barrier = look_up(_XLA_OPS, "xla_optimization_barrier")
    except _MISSING:
        return list(tensors)
    return barrier(tensors)


# --- Gradients.


def gradient_functions(*operations: str) -> dict[str, dict[str, Any]] | None:
    """Returns the gradient functions by operation, or None if they cannot be found.

    The value at "type" is the function.

    Args:
      operations: The operations that are needed.
    """
    try:
        functions = look_up(_OPS, "_gradient_registry")._registry
    except _MISSING:
        return None
    needed = (functions.get(name) for name in operations)
    found = all(isinstance(each, dict) and "type" in each for each in needed)
    return functions if found else None


# --- Sweeps: many runs as one vectorized map.


def check_sweeps() -> None:
    """Raises a `MissingNameError` if runs cannot be trained in one program."""
    remedy = "train the runs one after another"
    for name in ("GraphOrParentsInXlaContext", "_pfor_converter_registry", "wrap"):
        _needed(NAMES[name](), name, "sweep", remedy)
    missing = obstacle_to_substitution("sweep", remedy)
    if missing:
        raise MissingNameError(missing)


def obstacle_to_substitution(feature: str, remedy: str) -> str | None:
    """Returns the reason why tensors cannot replace variables; None if they can.

    Args:
      feature: The feature that needs it.
      remedy: A way to avoid the error with the installed releases.
    """
    if not is_available("variable_accessed"):
        return explanation(feature, "variable_accessed", remedy)
    variable = tf.Variable(0.0, trainable=False)
    try:
        change_class(variable, type("Probe", (type(variable),), {}))
    except TypeError:
        return explanation(feature, "tf.Variable.__class__ (assigned)", remedy)
    return None


def variable_accessed(variable: Any) -> None:
    """Makes the gradient tapes watch the variable's `handle`."""
    look_up(_TAPE, "variable_accessed")(variable)


def pfor_converters() -> dict[str, Any]:
    """Returns the converters of `tf.vectorized_map`, by the operation's name."""
    return look_up(_PFOR, "_pfor_converter_registry")


def pfor_wrap(tensor: tf.Tensor, is_stacked: bool) -> Any:
    """Wraps a tensor as the result of a converter."""
    return look_up(_PFOR, "wrap")(tensor, is_stacked)


# --- Functions and their traces.


def find_trace(
    function: Any, args: Any, kwargs: Any
) -> tuple[Callable[..., Any], list[tf.Tensor], list[tf.Tensor]] | None:
    """Finds the trace of a `tf.function` for arguments, and the tensors to pass to it.

    Returns:
      A tuple `(run, inputs, captured)`: `run(inputs, captured)` runs the trace,
      `inputs` are the arguments' tensors in the trace's order, and `captured` are the
      tensors that it captured. None if the captured tensors may change between calls.

    Raises:
      Exception: If a private name is missing, or does something else, in the installed
        release.
    """
    trace = function.get_concrete_function(*args, **kwargs)
    if (
        trace.graph.deferred_external_captures
        or look_up(function, "_function_captures").by_ref_external
    ):
        return None
    bound = look_up(function, "_function_type").bind_with_defaults(
        args, kwargs, look_up(function, "_default_values")
    )
    inputs = trace.function_type.unpack_inputs(
        trace.function_type.bind(*bound.args, **bound.kwargs)
    )
    return look_up(trace, "_call_flat"), inputs, trace.captured_inputs


def eager_tensor(array: np.ndarray) -> tf.Tensor:
    """Returns a copy of an array as an eager tensor, in less time than `tf.constant`.

    Raises:
      TypeError: If TensorFlow has no such dtype.
      ValueError: As for TypeError.
    """
    return _eager_converter()(array)


@functools.cache
def _eager_converter() -> Callable[[np.ndarray], tf.Tensor]:
    try:
        convert = look_up(_CONSTANTS, "convert_to_eager_tensor")
        context = look_up(_CONTEXT, "context_safe")
    except _MISSING:
        return tf.constant
    tf.constant(0)  # Before it, there is no context.
    return lambda array: convert(array, context())


def concrete_functions(function: Any) -> list[Any]:
    """Returns the traces of a `tf.function`."""
    return _needed(
        function,
        "_list_all_concrete_functions",
        "register_concrete_function",
        "give it a concrete function, fn.get_concrete_function(...)",
    )()


def changed_variables(graph: Any) -> list[tf.Variable]:
    """Returns the variables to which a function's graph assigns; none if unknown."""
    try:
        read_only = look_up(_CONTROL_DEPS, "get_read_only_resource_input_indices_graph")
    except _MISSING:
        return []
    unchanged = {id(graph.inputs[i]) for i in read_only(graph)}
    inside = {id(outer): inner for outer, inner in graph.captures}
    return [
        variable
        for variable in graph.variables
        if id(inside.get(id(variable.handle))) not in unchanged
    ]


# --- Specs and checkpoints.


def unbatched(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of one element of a batch."""
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec(spec.shape[1:], spec.dtype)
    return _needed(
        spec,
        "_unbatch",
        "remove_singleton_batch_spec_dim",
        f"give it a tf.TensorSpec rather than {spec}",
    )()


def structured_value() -> Any:
    """Returns an empty protocol buffer that can hold a nest of specs."""
    remedy = "do not read or write files of specs (policies and recordings have one)"
    return _needed(_PROTOS, "StructuredValue", "spec", remedy)()


def saved_model() -> Any:
    """Returns an empty protocol buffer that can hold a SavedModel."""
    remedy = "do not resume runs that have saved a policy"
    return _needed(_SAVED_MODELS, "SavedModel", "saved_model.pb", remedy)()


def checkpointed_objects() -> Any:
    """Returns an empty protocol buffer that can hold the objects of a checkpoint."""
    remedy = "do not read the weights of other libraries"
    return _needed(_OBJECTS, "TrackableObjectGraph", "checkpoint", remedy)()


def register_checkpoint_saver(
    name: str,
    applies: Callable[[Any], bool],
    save: Callable[[Any, Any], Any],
    restore: Callable[[Any, Any], None],
) -> bool:
    """Makes checkpoints save and restore some objects by functions.

    Args:
      name: A name for these functions, which checkpoints hold.
      applies: Whether an object is saved by them.
      save: Takes a dict of objects by their names in the checkpoint, and a prefix of
        files. Writes files, and returns their prefixes, a list of string tensors.
      restore: Takes such a dict, and the prefix of the checkpoint.

    Returns:
      Whether the functions were registered. If not, TensorFlow saves the objects in its
      own way.
    """
    try:
        register = look_up(_REGISTRATION, "register_checkpoint_saver")
    except _MISSING:
        return False
    register("tfrl", name, applies, save, restore)
    return True


class TracksMore:
    """A base class for Keras layers that save objects which Keras does not track."""

    def also_tracked(self) -> dict[str, Any]:
        """Returns the additional objects of checkpoints and SavedModels, by name."""
        raise NotImplementedError

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Any:
        others = self.also_tracked()
        try:
            children = look_up(super(), "_trackable_children")
        except AttributeError:
            return others
        return {**children(save_type, **kwargs), **others}


# --- Optimizers.


def has_adam_slots() -> bool:
    """Whether `adam_slots` can be called."""
    names = "_get_variable_index", "_momentums", "_velocities"
    return all(is_available(name) for name in names)


def adam_slots(adam: Any, variable: Any) -> tuple[tf.Variable, tf.Variable]:
    """Returns Adam's means of a variable's gradients and of their squares."""
    index = position(adam, variable)
    means, squares = look_up(adam, "_momentums"), look_up(adam, "_velocities")
    return means[index].value, squares[index].value


def position(optimizer: Any, variable: Any) -> int:
    """Returns the place of a variable among those of a Keras optimizer."""
    return int(look_up(optimizer, "_get_variable_index")(variable))


def learning_rate(optimizer: Any) -> Any:
    """Returns a Keras optimizer's rate: a variable, or a schedule or other callable.

    If this Keras has no such private attribute, the result for a schedule is its
    current value, a tensor.
    """
    try:
        return look_up(optimizer, "_learning_rate")
    except AttributeError:
        return optimizer.learning_rate


def updates_exactly(optimizer: Any, variables: Iterable[Any]) -> bool:
    """Whether a Keras optimizer was built for these variables; False if unknown."""
    try:
        bound = look_up(optimizer, "_trainable_variables")
    except AttributeError:
        return False
    return {id(v) for v in bound} == {id(v) for v in variables}


def create_v1_slots(optimizer: Any, variables: Sequence[tf.Variable]) -> None:
    """Creates the slots of a `tf.compat.v1.train.Optimizer`."""
    _needed(
        optimizer,
        "_create_slots",
        "optimizer",
        "give the agent the optimizer of the same name in keras.optimizers",
    )(variables)


# --- Layers.


def flatten_layers(
    layer: Any, include_self: bool = True, recursive: bool = True
) -> list[Any]:
    """Returns a layer, if `include_self`, and the layers in it.

    Without `recursive`, the layers inside inner layers are left out.
    """
    try:
        flatten = look_up(layer, "_flatten_layers")
    except AttributeError:
        inner = list(_walk(layer, recursive, {id(layer)}))
        return [layer, *inner] if include_self else inner
    return flatten(include_self=include_self, recursive=recursive)


def _walk(layer: Any, recursive: bool, seen: set[int]) -> Iterator[Any]:
    """Yields the layers in a layer's attributes, and in its lists, tuples and dicts."""
    pending = list(vars(layer).values())
    while pending:
        value = pending.pop(0)
        if isinstance(value, dict):
            pending[:0] = value.values()
        elif isinstance(value, list | tuple):
            pending[:0] = value
        elif isinstance(value, keras.layers.Layer) and id(value) not in seen:
            seen.add(id(value))
            yield value
            if recursive:
                yield from _walk(value, recursive, seen)


def lambda_output_shape(layer: keras.layers.Lambda) -> Any:
    """Returns the `output_shape` of a Lambda layer; None if it has to be inferred."""
    try:
        return look_up(layer, "_output_shape")
    except AttributeError:
        return None


# --- Gymnasium's wrappers.

# The private attributes that hold the state of wrappers, by module and class.
WRAPPER_STATE = {
    "common:OrderEnforcing": ("_has_reset",),
    "common:TimeLimit": ("_elapsed_steps",),
    "stateful_observation:MaxAndSkipObservation": ("_obs_buffer",),
    "stateful_observation:NormalizeObservation": ("_update_running_mean",),
    "stateful_reward:NormalizeReward": ("_update_running_mean",),
    "vector.stateful_observation:NormalizeObservation": ("_update_running_mean",),
    "vector.stateful_reward:NormalizeReward": ("_update_running_mean", "_prev_dones"),
}
# A mask of the members of a `SyncVectorEnv` that the next step resets.
MEMBERS_TO_RESET = "_autoreset_envs"


# --- dm_control.

# `Environment` of dm_control keeps its step count, and whether its next step resets, in
# these attributes. A wrapper of its suite keeps the wrapped environment in the other
# attribute.
DM_CONTROL_COUNTERS = ("_step_count", "_reset_next_step")
DM_CONTROL_WRAPPED = "_env"
# The limits of episodes of dm_control's `Environment`, and of Gymnasium's `TimeLimit`.
DM_CONTROL_STEP_LIMIT = "_step_limit"
GYMNASIUM_STEP_LIMIT = "_max_episode_steps"


# --- Environments in JAX.

# The registry of `brax.envs`, and the named parts of a `Spec` of Jumanji.
BRAX_REGISTRY = "_envs"
JUMANJI_PARTS = "_specs"


# --- Atari games.


def frames_skipped(env: Any) -> int | tuple[int, int]:
    """Returns the number of frames per action in a game of ALE; 1 if unknown."""
    try:
        return look_up(env.unwrapped, "_frameskip")
    except AttributeError:
        spec = env.unwrapped.spec
        return 1 if spec is None else spec.kwargs.get("frameskip", 1)


def last_picture(preprocessing: Any) -> Any:
    """Returns the picture that Gymnasium's `AtariPreprocessing` makes of its frames."""
    return _needed(
        preprocessing,
        "_get_obs",
        "AtariPreprocessing",
        "make it with terminal_on_life_loss=False",
    )()
