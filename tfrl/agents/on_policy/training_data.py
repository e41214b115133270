"""The steps that one call of `train` of an on-policy agent learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.compilation import accelerators, replicas
from tfrl.trajectories import episodes, trajectory
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types


class TrainingData(NamedTuple):
    """The steps that one call of `train` learns from.

    Attributes:
      time_steps: The time steps, `[B, T, ...]`.
      actions: The nest of actions, `[B, T, ...]`.
      returns: `[B, T]`.
      advantages: Normalized advantages, 0 where a step is not valid, `[B, T]`.
      raw_advantages: The same before they were normalized.
      old_values: The values when the returns were computed, `[B, T]`.
      old_log_probs: The log-probabilities of the actions when they were taken, 0 where
        a step is not valid, `[B, T]`.
      dist_params: The parameters of the distributions from which the actions were
        drawn.
      valid: Whether a frame is a step of an environment, bool `[B, T]`.
      weights: The weight of each step, 0 where it is not valid, `[B, T]`.
      frame_weights: The weight of each frame, `[B, T]`; boundary frames count, too. It
        is 0 for padding, and for a frame that a cut has made unusable.
      policy_state: The collect policy's state before the first step, `[B, ...]`.
    """

    time_steps: ts.TimeStep
    actions: Any
    returns: tf.Tensor
    advantages: tf.Tensor
    raw_advantages: tf.Tensor
    old_values: tf.Tensor
    old_log_probs: tf.Tensor
    dist_params: Any
    valid: tf.Tensor
    weights: tf.Tensor
    frame_weights: tf.Tensor
    policy_state: Any


def of_frames(
    frames: trajectory.Trajectory,
    old_log_probs: tf.Tensor,
    weights: tf.Tensor | None,
    policy_state: types.NestedTensor,
    normalize_advantages: bool,
) -> TrainingData:
    """Makes the training data of an update from frames with returns and advantages.

    Args:
      frames: Frames `[B, T, ...]`, with the entries 'return', 'advantage',
        'value_prediction' and 'dist_params' in their `policy_info`.
      old_log_probs: The log-probabilities of the actions when they were taken,
        `[B, T]`.
      weights: The weight of each example, a scalar, `[B]` or `[B, T]`; 1 if None.
      policy_state: The collect policy's state before the first step, `[B, ...]`.
      normalize_advantages: Whether to normalize the advantages of the valid steps.
    """
    valid = make_trajectory_mask(frames)
    info = frames.policy_info
    advantages = info["advantage"]
    if normalize_advantages:
        advantages = _normalized(advantages, valid)
    frame_weights = tf.cast(~episodes.is_padding(frames), tf.float32)
    if weights is not None:
        frame_weights *= losses.expand_weights(weights, frame_weights)
    return TrainingData(
        time_steps=time_steps_of(frames),
        actions=frames.action,
        returns=masked(info["return"], valid),
        advantages=masked(advantages, valid),
        raw_advantages=masked(info["advantage"], valid),
        old_values=masked(info["value_prediction"], valid),
        old_log_probs=masked(old_log_probs, valid),
        dist_params=info["dist_params"],
        valid=valid,
        weights=tf.where(valid, frame_weights, 0.0),
        frame_weights=frame_weights,
        policy_state=policy_state,
    )


def make_trajectory_mask(batched_traj: trajectory.Trajectory) -> tf.Tensor:
    """Returns which frames are steps of an environment, bool `[B, T]`.

    Boundary frames and padding are not steps. TF-Agents also treats a step as padding
    if its return and advantage are both 0; this function does not.
    """
    return ~(batched_traj.is_boundary() | episodes.is_padding(batched_traj))


def time_steps_of(frames: trajectory.Trajectory) -> ts.TimeStep:
    """Returns the time steps of frames; their rewards and discounts have no meaning."""
    return ts.TimeStep(
        step_type=frames.step_type,
        reward=frames.reward,
        discount=frames.discount,
        observation=frames.observation,
    )


def without_last(frames: trajectory.Trajectory) -> trajectory.Trajectory:
    """Returns frames `[B, T + 1, ...]` without the last of each row, `[B, T, ...]`.

    The integers in the frames are sliced on the accelerator, too.
    """
    return accelerators.map_moved(lambda leaf: leaf[:, :-1], frames)


def masked(values: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Returns numbers without gradient, with 0 for invalid steps."""
    return tf.stop_gradient(tf.where(valid, values, 0.0))


def _normalized(advantages: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Normalizes the advantages of valid steps, unless there is only one."""
    mask = tf.cast(valid, tf.float32)
    standardized = losses.standardize(advantages, mask, replicas.reduce_sum)
    return tf.where(replicas.reduce_sum(mask) > 1, standardized, advantages)
