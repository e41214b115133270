"""Converts a user's experience into the form that an algorithm learns from.

Every converter takes a `Trajectory` or a `Transition` (or a named tuple with the same
fields), checks it against the agent's specs, drops additional dictionary entries, and
returns experience in one form. A transition that starts at a boundary or crosses a cut
is not valid. The converter sets its `time_step.step_type` to LAST, and every loss masks
such transitions.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import composite, mixins, nest_utils


class DataContext(tf.Module, mixins.Untracked):
    """The specs of an agent's data, in the form of trajectories and of transitions."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        info_spec: types.NestedTensorSpec,
        policy_state_spec: types.NestedTensorSpec = (),
        use_half_transition: bool = False,
    ) -> None:
        """Derives the specs of trajectories and transitions.

        Args:
          time_step_spec: A `TimeStep` of tensor specs.
          action_spec: A nest of tensor specs.
          info_spec: A nest of tensor specs for the policy's info.
          policy_state_spec: A nest of tensor specs for the policy's state.
          use_half_transition: Whether transitions have a dummy next observation.
        """
        super().__init__()
        self._set_untracked("_time_step_spec", time_step_spec)
        self._set_untracked("_action_spec", action_spec)
        self._set_untracked("_info_spec", info_spec)
        self._set_untracked("_policy_state_spec", policy_state_spec)
        action_step_spec = policy_step.PolicyStep(
            action=action_spec, state=policy_state_spec, info=info_spec
        )
        trajectory_spec = trajectory.from_transition(
            time_step_spec, action_step_spec, time_step_spec
        )
        self._set_untracked("_trajectory_spec", trajectory_spec)
        next_time_step_spec = time_step_spec
        if use_half_transition:
            next_time_step_spec = time_step_spec._replace(
                observation=tf.TensorSpec((), tf.float32, name="observation")
            )
        transition_spec = trajectory.Transition(
            time_step=time_step_spec,
            action_step=action_step_spec,
            next_time_step=next_time_step_spec,
        )
        self._set_untracked("_transition_spec", transition_spec)

    @property
    def time_step_spec(self) -> ts.TimeStep:
        """The `TimeStep` of specs."""
        return self._time_step_spec

    @property
    def action_spec(self) -> types.NestedTensorSpec:
        """The nest of specs of the actions."""
        return self._action_spec

    @property
    def info_spec(self) -> types.NestedTensorSpec:
        """The nest of specs of the policy's info."""
        return self._info_spec

    @property
    def policy_state_spec(self) -> types.NestedTensorSpec:
        """The nest of specs of the policy's state."""
        return self._policy_state_spec

    @property
    def trajectory_spec(self) -> trajectory.Trajectory:
        """The `Trajectory` of specs."""
        return self._trajectory_spec

    @property
    def transition_spec(self) -> trajectory.Transition:
        """The `Transition` of specs."""
        return self._transition_spec


class AsTrajectory(tf.Module):
    """Converts experience to a `Trajectory` with one or two outer dimensions."""

    def __init__(
        self,
        data_context: DataContext,
        sequence_length: int | None = None,
        num_outer_dims: int = 2,
    ) -> None:
        """Stores the specs.

        Args:
          data_context: The specs.
          sequence_length: The required `T`; None allows any.
          num_outer_dims: 1 for results `[B, ...]`, 2 for results `[B, T, ...]`.
        """
        super().__init__()
        self._context = data_context
        self._sequence_length = sequence_length
        self._num_outer_dims = num_outer_dims

    def __call__(self, value: types.NestedTensor) -> trajectory.Trajectory:
        """Returns `value`, a trajectory or a transition, as a checked trajectory."""
        if _has_fields_of(value, trajectory.Transition):
            value = trajectory.from_transition(*value)
        return _checked_trajectory(
            value,
            self._context.trajectory_spec,
            self._sequence_length,
            self._num_outer_dims,
        )


class AsTransition(tf.Module):
    """Converts experience to a `Transition` `[B, T-1, ...]`, or `[B, ...]`."""

    def __init__(
        self,
        data_context: DataContext,
        squeeze_time_dim: bool = False,
        prepend_t0_to_next_time_step: bool = False,
    ) -> None:
        """Stores the specs.

        Args:
          data_context: The specs.
          squeeze_time_dim: Whether to require `T = 2` and drop the time dimension.
          prepend_t0_to_next_time_step: Whether to put the first observation before the
            observations of `next_time_step`. A sequence model then sees all `T` frames.
        """
        super().__init__()
        self._context = data_context
        self._squeeze_time_dim = squeeze_time_dim
        self._prepend_t0 = prepend_t0_to_next_time_step

    def __call__(self, value: types.NestedTensor) -> trajectory.Transition:
        """Returns `value`, a trajectory or a transition, as a checked transition."""
        if not _has_fields_of(value, trajectory.Transition):
            length = 2 if self._squeeze_time_dim else None
            frames = _checked_trajectory(value, self._context.trajectory_spec, length)
            value = trajectory.to_transition(frames)
            if self._squeeze_time_dim:
                value = _squeeze_time(value)
        value = _checked_transition(
            value, self._context.transition_spec, 1 if self._squeeze_time_dim else 2
        )
        if not self._prepend_t0:
            return value
        observations = accelerators.map_moved(
            lambda now, later: tf.concat([now[:, :1], later], axis=1),
            value.time_step.observation,
            value.next_time_step.observation,
        )
        return value._replace(
            next_time_step=value.next_time_step._replace(observation=observations)
        )


class AsHalfTransition(tf.Module):
    """Converts experience to a `Transition` with zeros for the next observation."""

    def __init__(
        self, data_context: DataContext, squeeze_time_dim: bool = False
    ) -> None:
        """Stores the specs.

        Args:
          data_context: The specs, made with `use_half_transition=True`.
          squeeze_time_dim: Whether to require `T = 1` and drop the time dimension.
        """
        super().__init__()
        self._context = data_context
        self._squeeze_time_dim = squeeze_time_dim

    def __call__(self, value: types.NestedTensor) -> trajectory.Transition:
        """Returns `value` as a checked transition without next observations."""
        if not _has_fields_of(value, trajectory.Transition):
            length = 1 if self._squeeze_time_dim else None
            frames = _checked_trajectory(value, self._context.trajectory_spec, length)
            zeros = tf.zeros_like(frames.discount)
            value = trajectory.Transition(
                ts.TimeStep(
                    step_type=frames.step_type,
                    reward=tf.nest.map_structure(tf.zeros_like, frames.reward),
                    discount=zeros,
                    observation=frames.observation,
                ),
                policy_step.PolicyStep(frames.action, (), frames.policy_info),
                ts.TimeStep(
                    step_type=frames.next_step_type,
                    reward=frames.reward,
                    discount=frames.discount,
                    observation=zeros,
                ),
            )
            if self._squeeze_time_dim:
                value = _squeeze_time(value)
        return _checked_transition(
            value, self._context.transition_spec, 1 if self._squeeze_time_dim else 2
        )


class AsNStepTransition(tf.Module):
    """Converts experience to an n-step `Transition` `[B, ...]`.

    The n steps never cross the end of an episode. `trajectory.to_n_step_transition`
    describes the returns and discounts.
    """

    def __init__(
        self, data_context: DataContext, gamma: float, n: int | None = None
    ) -> None:
        """Stores the specs and the discount.

        Args:
          data_context: The specs.
          gamma: The discount factor between the n steps.
          n: The number of steps; a `Trajectory` must then have `T = n + 1`. None allows
            any number.
        """
        super().__init__()
        self._context = data_context
        self._gamma = gamma
        self._n = n

    def __call__(self, value: types.NestedTensor) -> trajectory.Transition:
        """Returns `value`, a trajectory or a transition, as an n-step transition."""
        if not _has_fields_of(value, trajectory.Transition):
            length = None if self._n is None else self._n + 1
            frames = _checked_trajectory(value, self._context.trajectory_spec, length)
            value = trajectory.to_n_step_transition(frames, gamma=self._gamma)
        return _checked_transition(value, self._context.transition_spec, 1)


def _has_fields_of(value: Any, kind: Any) -> bool:
    return getattr(value, "_fields", None) == kind._fields


def _squeeze_time(value: Any) -> Any:
    return tf.nest.map_structure(lambda t: tf.squeeze(t, axis=1), value)


def _checked_trajectory(
    value: Any,
    spec: trajectory.Trajectory,
    sequence_length: int | None,
    num_outer_dims: int = 2,
) -> trajectory.Trajectory:
    """Returns `value` as a `Trajectory` without extra keys, or raises an error."""
    if not _has_fields_of(value, trajectory.Trajectory):
        raise TypeError(
            "experience: expected a Trajectory or a Transition, got "
            f"{type(value).__name__}; build one with tfrl.trajectories.trajectory."
        )
    value = tf.nest.map_structure(composite.as_tensor, trajectory.Trajectory(*value))
    value = _checked_nest(value, spec, num_outer_dims)
    if sequence_length is not None:
        for path, tensor in nest_utils.flatten_with_joined_paths(value):
            if tensor.shape[1] not in (None, sequence_length):
                raise ValueError(
                    f"experience.{path}: expected the time dimension T = "
                    f"{sequence_length} of a tensor [B, T, ...], got shape "
                    f"{tuple(tensor.shape)}; sample with num_steps={sequence_length} "
                    "(the agent's train_sequence_length)."
                )
    return value


def _checked_transition(
    value: Any, spec: trajectory.Transition, num_outer_dims: int
) -> trajectory.Transition:
    """Returns `value` as a `Transition` without extra keys, or raises an error."""
    value = trajectory.Transition(
        ts.TimeStep(*value.time_step),
        policy_step.PolicyStep(*value.action_step),
        ts.TimeStep(*value.next_time_step),
    )
    value = tf.nest.map_structure(composite.as_tensor, value)
    # A policy's state has no time dimension, so it is set aside for the check.
    state = value.action_step.state
    if tf.nest.flatten(state):
        state = _checked_nest(state, spec.action_step.state, 1)
    stateless_spec = spec._replace(action_step=spec.action_step._replace(state=()))
    stateless = value._replace(action_step=value.action_step._replace(state=()))
    pruned = _checked_nest(stateless, stateless_spec, num_outer_dims)
    return pruned._replace(action_step=pruned.action_step._replace(state=state))


def _checked_nest(value: Any, spec: Any, num_outer_dims: int) -> Any:
    """Returns `value` without extra keys; checks specs and outer dimensions."""
    try:
        value = nest_utils.prune_extra_keys(spec, value)
        batched = nest_utils.is_batched_nested_tensors(value, spec, num_outer_dims)
    except (TypeError, ValueError) as error:
        raise type(error)(f"experience: {error}") from error
    if batched:
        _check_same_outer_dims(value, num_outer_dims)
        return value
    dims = {1: "[B]", 2: "[B, T]"}[num_outer_dims]
    shapes = tf.nest.map_structure(lambda t: tuple(t.shape), value)
    expected = tf.nest.map_structure(lambda s: tuple(s.shape), spec)
    raise ValueError(
        f"experience: expected {num_outer_dims} outer dimension(s), every tensor of "
        f"shape {dims} + spec.shape, got shapes\n  {shapes}\nfor spec shapes\n  "
        f"{expected}\nAdd or remove an outer dimension, for instance with "
        "tf.nest.map_structure(lambda t: t[:, tf.newaxis], experience)."
    )


def _check_same_outer_dims(value: Any, num_outer_dims: int) -> None:
    """Raises a ValueError unless all tensors have the same outer dimensions."""
    (first_path, first), *others = nest_utils.flatten_with_joined_paths(value)
    for path, tensor in others:
        outer = tensor.shape[:num_outer_dims]
        if not outer.is_compatible_with(first.shape[:num_outer_dims]):
            raise ValueError(
                f"experience.{path}: got outer dimensions {tuple(outer)}, expected "
                f"{tuple(first.shape[:num_outer_dims])} as experience.{first_path} "
                "has; every tensor of the experience needs the same ones."
            )
