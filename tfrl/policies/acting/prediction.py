"""Chooses actions for raw observations; takes and returns arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tree

from tfrl.policies.acting import observations, traced_action
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class Acting(Protocol):
    """The interface of a policy, live or saved."""

    def action(self, time_step: ts.TimeStep, policy_state: Any) -> Any:
        """Returns a `PolicyStep` for a batch of time steps."""

    def get_initial_state(self, batch_size: Any) -> Any:
        """Returns the initial state of `batch_size` episodes."""


# Returns the pair (action, next state) for a policy, observations `[B, ...]`, a state,
# and whether episodes begin, bool `[B]`.
Act = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


_REMEDY = (
    "give the state that the call before returned for the same episodes, or None at "
    "their beginning"
)


class Predictor:
    """The method `predict` of one policy; see `TFPolicy.predict`.

    All that the specs determine is prepared once, because programs call `predict` for
    each step of an environment.
    """

    def __init__(self, time_step_spec: ts.TimeStep, act: Act) -> None:
        """Prepares the checks; see `of_tensors` and `of_arrays`."""
        self._observations = observations.Observations(time_step_spec.observation)
        self._act = act
        # An initial state, for its structure, and the shapes of its parts without the
        # batch; None before the first call.
        self._initial: Any = None
        self._shapes: list[list[int]] = []

    def __call__(
        self,
        policy: Acting,
        observation: types.NestedArray,
        state: types.NestedArray | None,
        episode_start: Any,
    ) -> tuple[types.NestedArray, types.NestedArray]:
        """Returns actions and the next state; see `TFPolicy.predict`.

        Args:
          policy: The policy, which takes batches; always the same one.
          observation: See `TFPolicy.predict`.
          state: See `TFPolicy.predict`.
          episode_start: See `TFPolicy.predict`.

        Raises:
          TypeError: See `TFPolicy.predict`.
          ValueError: See `TFPolicy.predict`.
        """
        arrays, is_batch = self._observations.as_batch(observation)
        size = len(tree.flatten(arrays)[0])
        starts = _starts(
            state is None if episode_start is None else episode_start, size
        )
        state = self._state(policy, state, size, is_batch)
        action, state = self._act(policy, arrays, state, starts)
        as_output = _as_array if is_batch else _first_array
        return _map(as_output, action), _map(as_output, state)

    def _state(
        self, policy: Acting, state: Any, batch_size: int, is_batch: bool
    ) -> types.NestedArray:
        """Returns the policy's state `[B, ...]`, the initial one for None."""
        if self._initial is None or (self._shapes and state is None):
            self._initial = policy.get_initial_state(batch_size)
            self._shapes = [list(x.shape[1:]) for x in tree.flatten(self._initial)]
            if state is None:
                return self._initial
        if not self._shapes:
            return ()
        try:
            parts = tree.flatten_up_to(self._initial, state, check_types=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"state: its structure differs from the policy's ({error}); {_REMEDY}."
            ) from None
        arrays = [_as_array(part) for part in parts]
        for array, shape in zip(arrays, self._shapes, strict=True):
            expected = [batch_size] * is_batch + shape
            if list(array.shape) != expected:
                raise ValueError(
                    f"state: got an array {list(array.shape)}, expected {expected} "
                    f"for the observations that were given; {_REMEDY}."
                )
        made = tree.unflatten_as(self._initial, arrays)
        return made if is_batch else observations.batched(made)


def of_tensors(time_step_spec: ts.TimeStep, *, at_once: bool = False) -> Predictor:
    """Returns the predictor of a policy on tensors, live or saved.

    If the policy may be traced, the predictor has a trace of its own. Its only inputs
    are the observation, the state and the beginnings of episodes, because each input
    adds to the time of a call.

    Args:
      time_step_spec: The specs of the policy's time steps.
      at_once: See `TracedAction`.
    """
    act = functools.partial(_act_on_tensors, tensor_spec.from_spec(time_step_spec))
    trace = traced_action.TracedAction(act, "predict", at_once=at_once)
    return Predictor(time_step_spec, trace.call)


def of_arrays(time_step_spec: ts.TimeStep) -> Predictor:
    """Returns the predictor of a policy on arrays."""
    act = functools.partial(_act_on_arrays, tensor_spec.from_spec(time_step_spec))
    return Predictor(time_step_spec, act)


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
      time_step_spec: The specs of the policy's time steps.
      observation: Tensors `[B, ...]`.
      state: The state, `[B, ...]`.
      episode_start: Whether an episode begins, bool `[B]`.
    """
    step: policy_step.PolicyStep = policy.action(
        _time_step(time_step_spec, observation, episode_start), state
    )
    return step.action, step.state


def _act_on_tensors(
    spec: ts.TimeStep, policy: Acting, observation: Any, state: Any, starts: Any
) -> tuple[Any, Any]:
    inputs = tf.nest.map_structure(tf.convert_to_tensor, (observation, state, starts))
    return predict_tensors(policy, spec, *inputs)


def _act_on_arrays(
    spec: ts.TimeStep, policy: Acting, observation: Any, state: Any, starts: Any
) -> tuple[Any, Any]:
    time_step = _time_step(spec, observation, tf.convert_to_tensor(starts))
    inputs = tree.map_structure(np.asarray, (time_step, state))
    step = policy.action(*inputs)
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


def _starts(episode_start: Any, batch_size: int) -> Any:
    """Returns whether an episode begins, bool `[B]`, an array or a tensor."""
    if episode_start is True or episode_start is False:
        return _same_starts(episode_start, batch_size)
    starts = np.asarray(episode_start)
    if starts.dtype != np.bool_ or starts.shape not in ((), (1,), (batch_size,)):
        raise ValueError(
            f"episode_start: got {starts.dtype} {list(starts.shape)}, expected a bool, "
            f"or bools [{batch_size}], one for each observation."
        )
    return np.full(batch_size, starts)


@functools.lru_cache(maxsize=8)
def _same_starts(start: bool, batch_size: int) -> tf.Tensor:
    return tf.constant(start, shape=[batch_size])


def _map(function: Callable[[Any], Any], nest: Any) -> Any:
    """Maps a nest of tensors or arrays, in less time if it is one tensor or empty."""
    if isinstance(nest, tf.Tensor):
        return function(nest)
    return (
        () if type(nest) is tuple and not nest else tree.map_structure(function, nest)
    )


def _as_array(output: Any) -> np.ndarray:
    # `numpy` copies, where `np.asarray` returns an array that cannot be changed.
    return output.numpy() if isinstance(output, tf.Tensor) else np.asarray(output)


def _first_array(output: Any) -> Any:
    return _as_array(output)[0]
