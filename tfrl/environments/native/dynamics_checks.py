"""Checks `Dynamics` before an environment is made from them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals, stablehlo
from tfrl.environments.native import dynamics as dynamics_lib
from tfrl.specs import matching, tensor_spec
from tfrl.utils import nest_utils

# Stateful operations that are allowed: parameters may be read from variables, and
# programs in StableHLO, of which TensorFlow does not know that they are pure. What a
# loop, a branch or a function calls is looked at, too.
_HARMLESS = frozenset(
    {
        *("ReadVariableOp", "Assert", "XlaCallModule"),
        *("While", "If", "Case", "StatefulPartitionedCall"),
    }
)


# Maps dynamics that were checked, and a batch size, to the nest of specs of a state.
_CHECKED: weakref.WeakKeyDictionary[dynamics_lib.Dynamics, dict[int, Any]] = (
    weakref.WeakKeyDictionary()
)


def check(dynamics: dynamics_lib.Dynamics, batch_size: int) -> Any:
    """Returns the nest of specs of a state, `[B, ...]`.

    Dynamics are checked when they are first seen with a batch size, and not again.

    Raises:
      ValueError: If a function cannot be traced, is not pure, or returns another
        structure, shape or dtype than it should, or a spec has no elements.
      TypeError: If `step` does not return an `Outcome`.
    """
    checked = _CHECKED.setdefault(dynamics, {})
    if batch_size not in checked:
        checked[batch_size] = _check(dynamics, batch_size)
    return checked[batch_size]


def _check(dynamics: dynamics_lib.Dynamics, batch_size: int) -> Any:
    """Traces each function once, and returns the nest of specs of a state."""
    matching.check_not_empty(dynamics.observation_spec, "observation_spec")
    matching.check_not_empty(dynamics.action_spec, "action_spec")
    initial = _trace(
        "initial", dynamics.initial, _random_spec(batch_size, dynamics, "initial")
    )
    state_spec = tf.nest.map_structure(
        lambda t: tf.TensorSpec(t.shape, t.dtype), initial
    )
    for path, spec in nest_utils.flatten_with_joined_paths(state_spec):
        if not spec.shape.is_fully_defined() or spec.shape[:1] != [batch_size]:
            raise ValueError(
                f"{_join('initial(random)', path)}: got shape {spec.shape}, expected "
                f"static [{batch_size}, ...], the batch of `random` in front; make the "
                "state from `random`, whose shape is static."
            )
    outcome = _trace(
        "step",
        dynamics.step,
        state_spec,
        tensor_spec.add_outer_dims_nest(dynamics.action_spec, (batch_size,)),
        _random_spec(batch_size, dynamics, "step"),
    )
    if not isinstance(outcome, dynamics_lib.Outcome):
        raise TypeError(
            f"step: got a {type(outcome).__name__}, expected an Outcome; return "
            "native.Outcome(state, reward, terminated)."
        )
    _check_like("step(...).state", outcome.state, state_spec)
    _check_like(
        "step(...).reward", outcome.reward, tf.TensorSpec([batch_size], tf.float32)
    )
    _check_like(
        "step(...).terminated", outcome.terminated, tf.TensorSpec([batch_size], tf.bool)
    )
    if outcome.truncated is not None:
        _check_like(
            "step(...).truncated",
            outcome.truncated,
            tf.TensorSpec([batch_size], tf.bool),
        )
    if dynamics.restart is not None:
        restarted = _trace(
            "restart",
            dynamics.restart,
            state_spec,
            tf.TensorSpec([batch_size], tf.bool),
            _random_spec(batch_size, dynamics, "initial"),
        )
        _check_like("restart(...)", restarted, state_spec)
    _check_like(
        "observe(state)",
        _trace("observe", dynamics.observation, state_spec),
        tensor_spec.add_outer_dims_nest(dynamics.observation_spec, (batch_size,)),
    )
    return state_spec


def _random_spec(
    batch_size: int, dynamics: dynamics_lib.Dynamics, name: str
) -> tf.TensorSpec:
    number = getattr(dynamics, f"num_{name}_randoms")
    return tf.TensorSpec([batch_size, number], tf.float32)


def _trace(name: str, function: Callable[..., Any], *specs: Any) -> Any:
    """Returns the symbolic outputs of `function`, a nest of tensors."""
    try:
        # AutoGraph is off, because a Python branch on a tensor cannot choose for each
        # member.
        traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    except stablehlo.UnusableProgramError:
        raise
    except Exception as error:
        raise ValueError(
            f"{name}: got {type(error).__name__} ({_first_line(error)}), expected a "
            "function of tensors of static shapes that can be traced; choose with "
            "tf.where, and use Python's `if` and NumPy only on values that are not "
            "tensors."
        ) from error
    graph = traced.graph.as_graph_def()
    nodes = [*graph.node, *(x for f in graph.library.function for x in f.node_def)]
    types = {node.op for node in nodes} - _HARMLESS
    stateful = sorted(filter(internals.is_stateful, types))
    if stateful:
        raise ValueError(
            f"{name}: got the operations {', '.join(stateful)}, expected a pure "
            "function; take random numbers from the argument `random`, and keep "
            "everything that changes in the state."
        )
    return traced.structured_outputs


def _check_like(where: str, value: Any, spec: Any) -> None:
    """Raises a ValueError unless `value` has the structure, shapes and dtypes."""
    try:
        nest_utils.assert_same_structure(value, spec)
    except (TypeError, ValueError):
        raise ValueError(
            f"{where}: got {_describe(value)}, expected {_describe(spec)}; return the "
            "same structure."
        ) from None
    for (path, tensor), expected in zip(
        nest_utils.flatten_with_joined_paths(value),
        tf.nest.flatten(spec),
        strict=True,
    ):
        if tensor is None or (tensor.shape, tensor.dtype) != (
            expected.shape,
            expected.dtype,
        ):
            raise ValueError(
                f"{_join(where, path)}: got {_describe(tensor)}, expected "
                f"{_describe(expected)}; correct the shape, or cast the tensor."
            )


def _describe(nest: Any) -> str:
    def leaf(value: Any) -> str:
        return "None" if value is None else f"{value.dtype.name} {value.shape}"

    leaves = tf.nest.map_structure(leaf, nest)
    return leaves if isinstance(leaves, str) else str(leaves)


def _join(where: str, path: str) -> str:
    return f"{where}/{path}" if path else where


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""
