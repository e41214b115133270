"""`Trajectory`, frames of experience, and its constructors.

Frame `t` of a trajectory holds `observation[t]`, `step_type[t]` and `action[t]`. It
also holds `reward[t]`, `discount[t]` and `next_step_type[t]` of the time step after the
action. The observation of that time step is in frame `t + 1`. A frame whose `step_type`
is LAST is a *boundary*, the reset between two episodes. This module also re-exports the
functions of `transitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self

import numpy as np
import tensorflow as tf
from typing_extensions import TypeVar

from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.trajectories.transitions import (
    Transition,
    experience_to_transitions,
    to_n_step_transition,
    to_transition,
    to_transition_spec,
)
from tfrl.typing import types
from tfrl.utils import composite, nest_utils

__all__ = [
    "Trajectory",
    "Transition",
    "boundary",
    "experience_to_transitions",
    "first",
    "from_episode",
    "from_transition",
    "last",
    "mid",
    "single_step",
    "to_n_step_transition",
    "to_transition",
    "to_transition_spec",
]

_StepType = ts.StepType
_NextStepTypeT = TypeVar(
    "_NextStepTypeT", bound=types.NestedValue, default=Any, covariant=True
)
_EPISODE_FIELDS = ("observation", "action", "policy_info", "reward", "discount")


class _Fields(
    NamedTuple,
    Generic[
        ts.StepTypeT,
        ts.ObservationT,
        policy_step.ActionT,
        policy_step.InfoT,
        _NextStepTypeT,
        ts.RewardT,
        ts.DiscountT,
    ],
):
    step_type: ts.StepTypeT
    observation: ts.ObservationT
    action: policy_step.ActionT
    policy_info: policy_step.InfoT
    next_step_type: _NextStepTypeT
    reward: ts.RewardT
    discount: ts.DiscountT


class Trajectory(
    _Fields[
        ts.StepTypeT,
        ts.ObservationT,
        policy_step.ActionT,
        policy_step.InfoT,
        _NextStepTypeT,
        ts.RewardT,
        ts.DiscountT,
    ]
):
    """Frames of experience, `[B, ...]` or `[B, T, ...]`.

    Annotations can name the types of the fields, in their order. Types that are not
    named are `Any`: `Trajectory`, or `Trajectory[np.ndarray, dict[str, np.ndarray]]`.

    Attributes:
      step_type: The `StepType` at which the action was taken, int32.
      observation: The nest of observations that the policy received.
      action: The nest of the policy's actions.
      policy_info: The nest of the policy's info (not its state).
      next_step_type: The `StepType` of the time step after the action, int32.
      reward: The reward for the action, float32 or a nest.
      discount: The environment's discount after the action, float32.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # Arguments may have other types than the fields.

        def __new__(  # noqa: D102
            cls,
            step_type: types.NestedValue,
            observation: Any,
            action: Any,
            policy_info: Any,
            next_step_type: types.NestedValue,
            reward: types.NestedValue,
            discount: types.NestedValue,
        ) -> Self: ...

        def _replace(
            self,
            *,
            step_type: types.NestedValue = ...,
            observation: Any = ...,
            action: Any = ...,
            policy_info: Any = ...,
            next_step_type: types.NestedValue = ...,
            reward: types.NestedValue = ...,
            discount: types.NestedValue = ...,
        ) -> Self: ...

    def is_first(self) -> Any:
        """Whether each frame starts an episode."""
        return ts.equals_step_type(self.step_type, _StepType.FIRST)

    def is_mid(self) -> Any:
        """Whether each frame lies inside an episode: MID followed by MID."""
        return ts.equals_step_type(self.step_type, _StepType.MID) & ts.equals_step_type(
            self.next_step_type, _StepType.MID
        )

    def is_last(self) -> Any:
        """Whether the action of each frame led to a LAST step."""
        return ts.equals_step_type(self.next_step_type, _StepType.LAST)

    def is_boundary(self) -> Any:
        """Whether each frame is a reset between two episodes."""
        return ts.equals_step_type(self.step_type, _StepType.LAST)

    def is_episode_end(self) -> Any:
        """Whether the action of each frame ended an episode that was running.

        A frame from LAST to LAST, such as the padding of the `FixedLength` wrapper,
        does not count, because its episode has already ended.
        """
        return self.is_last() & ~self.is_boundary()

    def is_reset(self) -> Any:
        """Whether each frame is a reset after an episode, without padding."""
        return self.is_boundary() & ~self.is_last()

    def __repr__(self) -> str:
        return ts.fields_repr(self)

    def replace(self, **kwargs: Any) -> Trajectory:
        """Returns a copy with the given fields replaced."""
        return self._replace(**kwargs)


def first(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue,
) -> Trajectory:
    """Returns frames from FIRST to MID.

    All arguments are nests of arrays or of tensors with the same outer shape (`[]`,
    `[B]`, `[T]` or `[B, T]`), which is the shape of `discount`. If any is a tensor, the
    result is made of tensors.
    """
    arguments = observation, action, policy_info, reward, discount
    return _frames(_StepType.FIRST, _StepType.MID, *arguments)


def mid(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue,
) -> Trajectory:
    """Returns frames from MID to MID; for the arguments see `first`."""
    arguments = observation, action, policy_info, reward, discount
    return _frames(_StepType.MID, _StepType.MID, *arguments)


def last(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue,
) -> Trajectory:
    """Returns frames from MID to LAST; for the arguments see `first`."""
    arguments = observation, action, policy_info, reward, discount
    return _frames(_StepType.MID, _StepType.LAST, *arguments)


def single_step(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue,
) -> Trajectory:
    """Returns frames from FIRST to LAST; for the arguments see `first`."""
    arguments = observation, action, policy_info, reward, discount
    return _frames(_StepType.FIRST, _StepType.LAST, *arguments)


def boundary(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue,
) -> Trajectory:
    """Returns frames from LAST to FIRST; for the arguments see `first`."""
    arguments = observation, action, policy_info, reward, discount
    return _frames(_StepType.LAST, _StepType.FIRST, *arguments)


def from_episode(
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: types.NestedValue,
    discount: types.NestedValue | None = None,
) -> Trajectory:
    """Returns the `[T, ...]` trajectory of one whole episode.

    Args:
      observation: The nest `[T, ...]` of observations before each action. The
        observation after the last action has no frame; if it matters, append a
        boundary frame with it.
      action: A nest `[T, ...]`.
      policy_info: A nest `[T, ...]`.
      reward: A nest `[T, ...]`, the reward for each action.
      discount: Float32 `[T]`; ones if None.

    Returns:
      Frames of step types FIRST, MID, ..., MID; the last frame leads to a LAST step.
      They are NumPy arrays if no argument holds a tensor.

    Raises:
      ValueError: The first dimensions of two arguments are known and differ.
    """
    data = (observation, action, policy_info, reward, discount)
    time_source: Any = tf.nest.flatten(reward)[0] if discount is None else discount
    if not nest_utils.has_tensors(data):
        num_frames = np.shape(time_source)[0]
        if discount is None:
            discount = np.ones([num_frames], np.float32)
        data = tf.nest.map_structure(np.asarray, (*data[:-1], discount))
        step_types = np.full([num_frames + 1], _StepType.MID)
        step_types[0], step_types[-1] = _StepType.FIRST, _StepType.LAST
    else:
        num_frames = _outer_dim(time_source)
        if discount is None:
            discount = tf.ones([num_frames], tf.float32)
        data = tf.nest.map_structure(composite.as_tensor, (*data[:-1], discount))
        step_types = tf.concat(
            [
                [_StepType.FIRST],
                tf.fill([num_frames - 1], _StepType.MID),
                [_StepType.LAST],
            ],
            axis=0,
        )
    _check_episode_lengths(data, num_frames)
    observation, action, policy_info, reward, discount = data
    return Trajectory(
        step_type=step_types[:-1],
        observation=observation,
        action=action,
        policy_info=policy_info,
        next_step_type=step_types[1:],
        reward=reward,
        discount=discount,
    )


def from_transition(
    time_step: ts.TimeStep[ts.StepTypeT, Any, Any, ts.ObservationT],
    action_step: policy_step.PolicyStep[policy_step.ActionT, Any, policy_step.InfoT],
    next_time_step: ts.TimeStep[_NextStepTypeT, ts.RewardT, ts.DiscountT],
) -> Trajectory[
    ts.StepTypeT,
    ts.ObservationT,
    policy_step.ActionT,
    policy_step.InfoT,
    _NextStepTypeT,
    ts.RewardT,
    ts.DiscountT,
]:
    """Returns the frame of one step, with the outer shape of the arguments."""
    return Trajectory(
        step_type=time_step.step_type,
        observation=time_step.observation,
        action=action_step.action,
        policy_info=action_step.info,
        next_step_type=next_time_step.step_type,
        reward=next_time_step.reward,
        discount=next_time_step.discount,
    )


def _frames(
    step_type: np.ndarray,
    next_step_type: np.ndarray,
    observation: Any,
    action: Any,
    policy_info: Any,
    reward: Any,
    discount: Any,
) -> Trajectory:
    """Returns frames of the given step types, in the shape of `discount`."""
    if nest_utils.has_tensors(observation, action, policy_info, reward, discount):
        convert: Any = composite.as_tensor
        discount = tf.convert_to_tensor(discount)
        step_types = [
            tf.fill(tf.shape(discount), tf.constant(s))
            for s in (step_type, next_step_type)
        ]
    else:
        convert = np.asarray
        discount = np.asarray(discount, np.float32)
        step_types = [np.full(discount.shape, s) for s in (step_type, next_step_type)]
    return Trajectory(
        step_type=step_types[0],
        observation=tf.nest.map_structure(convert, observation),
        action=tf.nest.map_structure(convert, action),
        policy_info=tf.nest.map_structure(convert, policy_info),
        next_step_type=step_types[1],
        reward=tf.nest.map_structure(convert, reward),
        discount=discount,
    )


def _outer_dim(value: Any) -> Any:
    """Returns the first dimension: a number if it is known, else a scalar tensor."""
    if not tf.is_tensor(value):
        return np.shape(value)[0]
    static = value.shape[0]
    return composite.shape(value)[0] if static is None else static


def _check_episode_lengths(data: Any, num_frames: Any) -> None:
    for path, leaf in nest_utils.flatten_with_joined_paths(data):
        length = _outer_dim(leaf)
        if tf.is_tensor(length) or tf.is_tensor(num_frames) or length == num_frames:
            continue
        field, _, rest = path.partition("/")
        name = _EPISODE_FIELDS[int(field)]
        raise ValueError(
            f"from_episode: {'/'.join(filter(None, (name, rest)))} has first dimension "
            f"{length}, expected {num_frames} as the discount (or the first reward) "
            "has; give every argument one entry a step."
        )
