"""Chooses actions for raw observations; takes and returns arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import matching, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class Acting(Protocol):
    """The interface of a policy, live or saved."""

    def action(self, time_step: ts.TimeStep, policy_state: Any) -> Any:
        """Returns a `PolicyStep` for a batch of time steps."""

    def get_initial_state(self, batch_size: Any) -> Any:
        """Returns the initial state of `batch_size` episodes."""


def predict(
    policy: Acting,
    time_step_spec: ts.TimeStep,
    observation: types.NestedArray,
    state: types.NestedArray | None,
    episode_start: Any,
    convert: Callable[[Any], Any] = tf.convert_to_tensor,
) -> tuple[types.NestedArray, types.NestedArray]:
    """Returns actions and the next state; see `TFPolicy.predict`.

    Args:
      policy: The policy, which takes batches.
      time_step_spec: The specs of its time steps.
      observation: See `TFPolicy.predict`.
      state: See `TFPolicy.predict`.
      episode_start: See `TFPolicy.predict`.
      convert: Converts an array or a tensor to an input of the policy.
    """
    spec = tensor_spec.from_spec(time_step_spec)
    arrays = _conform(observation, spec.observation)
    leaf, leaf_spec = tree.flatten(arrays)[0], tree.flatten(spec.observation)[0]
    is_batched = leaf.ndim > leaf_spec.shape.rank
    if not is_batched:
        arrays = _batched(arrays)
    batch_size = len(tree.flatten(arrays)[0])
    first = state is None if episode_start is None else episode_start
    if state is None:
        state = policy.get_initial_state(batch_size)
    elif not is_batched:
        state = _batched(state)
    time_step = _time_step(spec, arrays, tf.constant(_starts(first, batch_size)))
    step = policy.action(*tf.nest.map_structure(convert, (time_step, state)))
    outputs = tree.map_structure(np.asarray, (step.action, step.state))
    return outputs if is_batched else tree.map_structure(lambda x: x[0], outputs)


def predict_tensors(
    policy: Acting,
    time_step_spec: ts.TimeStep,
    observation: types.NestedTensor,
    state: types.NestedTensor,
    episode_start: tf.Tensor,
) -> tuple[types.NestedTensor, types.NestedTensor]:
    """Returns actions and the next state, as batched tensors; for graphs.

    Args:
      policy: The policy.
      time_step_spec: The specs of its time steps.
      observation: Tensors `[B, ...]`.
      state: The state, `[B, ...]`.
      episode_start: Whether an episode begins, bool `[B]`.
    """
    step: policy_step.PolicyStep = policy.action(
        _time_step(time_step_spec, observation, episode_start), state
    )
    return step.action, step.state


def _time_step(
    spec: ts.TimeStep, observation: types.NestedTensor, episode_start: tf.Tensor
) -> ts.TimeStep:
    """Returns time steps for a policy, with rewards that policies do not read."""
    outer = tf.shape(episode_start)
    return ts.TimeStep(
        tf.where(episode_start, ts.StepType.FIRST, ts.StepType.MID),
        tf.nest.map_structure(
            lambda leaf: tf.zeros(tf.concat([outer, leaf.shape], 0), leaf.dtype),
            spec.reward,
        ),
        tf.ones(outer, spec.discount.dtype),
        observation,
    )


def _batched(nest: Any) -> Any:
    return tree.map_structure(lambda array: np.asarray(array)[np.newaxis], nest)


def _starts(episode_start: Any, batch_size: int) -> np.ndarray:
    """Returns whether an episode begins, bool `[B]`."""
    starts = np.asarray(episode_start)
    if starts.dtype != np.bool_ or starts.shape not in ((), (1,), (batch_size,)):
        raise ValueError(
            f"episode_start: got {starts.dtype} {list(starts.shape)}, expected a bool, "
            f"or bools [{batch_size}], one for each observation."
        )
    return np.broadcast_to(starts, [batch_size])


def _conform(observation: Any, spec: Any) -> Any:
    """Returns the observations as arrays of the specs' dtypes.

    Raises:
      TypeError: A value cannot be cast to the dtype of its spec.
      ValueError: The structure, or a shape, differs from the specs.
    """
    try:
        leaves = tree.flatten_up_to(spec, observation, check_types=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"observation: its structure differs from the spec {spec}: {error}"
        ) from None
    arrays: list[np.ndarray] = []
    outer: tuple[None, ...] = ()
    for (path, leaf_spec), leaf in zip(
        tree.flatten_with_path(spec), leaves, strict=True
    ):
        array = matching.cast(np.asarray(leaf), leaf_spec)
        if not arrays and array.ndim > leaf_spec.shape.rank:
            outer = (None,)
        matching.check(
            matching.join("observation", *path),
            array,
            leaf_spec,
            outer,
            remedy="convert it, and give a batch of all observations or of none",
            dtype_error=TypeError,
        )
        arrays.append(array)
    return tree.unflatten_as(spec, arrays)
