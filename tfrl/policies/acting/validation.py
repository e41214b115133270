"""Checks of a policy's inputs and outputs against its specs.

The checks use only structures, dtypes and static shapes, so they add no operations to a
graph and cost nothing after a `tf.function` is traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.specs import matching
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import composite, nest_utils

_OBSERVATIONS = (np.ndarray, np.generic, tf.Tensor, Mapping, list, int, float)


def check_time_step_spec(time_step_spec: Any) -> None:
    """Raises ValueError unless `time_step_spec` is a `TimeStep` of specs."""
    if not isinstance(time_step_spec, ts.TimeStep):
        raise ValueError(
            "time_step_spec: expected a TimeStep of specs, got "
            f"{type(time_step_spec).__name__}; make one with "
            "tfrl.trajectories.time_step.time_step_spec(observation_spec)."
        )


def check_is_time_step(time_step: Any) -> None:
    """Raises TypeError if only an observation is given: an array or a dict of them."""
    if isinstance(time_step, _OBSERVATIONS):
        raise TypeError(
            f"time_step: expected a TimeStep, got {type(time_step).__name__}; call "
            "predict(observation) for an observation alone, or make the time step with "
            "tfrl.trajectories.restart(observation, batch_size)."
        )


def conform(
    values: types.NestedTensor, specs: types.NestedTensorSpec, where: str
) -> Any:
    """Returns `values` as tensors that match `specs`, without unknown dict entries.

    Args:
      values: A nest of tensors or arrays with any number of outer dimensions.
      specs: The nest of specs that describes them.
      where: A description of the values, for the error text.

    Raises:
      TypeError: A dtype differs.
      ValueError: The structure, the inner shape or the number of outer dimensions
        differs.
    """
    values = nest_utils.prune_extra_keys(specs, values)
    nest_utils.assert_same_structure(
        values, specs, message=f"{where}: does not have the structure of its spec"
    )
    values = tf.nest.map_structure(composite.as_tensor, values)
    outer: tuple[None, ...] | None = None
    for (path, value), spec in zip(
        nest_utils.flatten_with_joined_paths(values),
        tf.nest.flatten(specs),
        strict=True,
    ):
        if not isinstance(spec, tf.TensorSpec):  # Sparse and ragged tensors.
            continue
        matching.check(
            f"{where} {path}".rstrip(),
            value,
            spec,
            outer,
            remedy="cast it, give all the same batch dimensions, or change the spec",
            dtype_error=TypeError,
        )
        if outer is None and None not in (value.shape.rank, spec.shape.rank):
            outer = (None,) * (value.shape.rank - spec.shape.rank)
    return values


def check_action(action: Any, action_spec: Any, policy_name: str) -> None:
    """Raises an error unless `action` has `action_spec`'s structure and dtypes."""
    nest_utils.assert_same_structure(
        action,
        action_spec,
        message=f"{policy_name}: the action does not have the structure of action_spec",
    )
    for value, spec in zip(
        tf.nest.flatten(action), tf.nest.flatten(action_spec), strict=True
    ):
        if value.dtype != spec.dtype:
            raise TypeError(
                f"{policy_name}: the policy produced an action of dtype "
                f"{value.dtype.name}, expected {spec.dtype.name} as in {spec}; cast it "
                "in _action, or give the distribution that dtype."
            )


def check_policy_step(
    step: policy_step.PolicyStep, spec: policy_step.PolicyStep, policy_name: str
) -> None:
    """Raises ValueError unless `step` has the structure of `spec`."""
    nest_utils.assert_same_structure(
        step,
        spec,
        message=(
            f"{policy_name}: the policy's result does not have the structure of "
            "policy_step_spec"
        ),
    )
