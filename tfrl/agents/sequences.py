"""Builds the sequences that a recurrent network is unrolled over.

The output of a recurrent network at a step depends on all earlier steps. So the unroll
for the values of the next steps also starts at the first step of the sequence.
"""

from __future__ import annotations

import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def unroll(transition: trajectory.Transition) -> trajectory.Transition:
    """Returns the transitions `[B, T - 1]` with the time steps to unroll networks over.

    Returns:
      The `Transition`. Its `time_step` is the result of `current_steps`, `[B, T - 1]`.
      Its `next_time_step` is the result of `whole_sequence`, `[B, T]`, whose first
      entry only serves to update the network's state.
    """
    return transition._replace(
        time_step=current_steps(transition.time_step),
        next_time_step=whole_sequence(transition.time_step, transition.next_time_step),
    )


def current_steps(time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns the steps `[B, T - 1]` at which actions are taken.

    The step after a masked step (a boundary, or a step before a cut) starts a new
    sequence, unless it is masked itself, and stays so.
    """
    masked = time_step.is_last()
    starts = tf.pad(masked[:, :-1], [[0, 0], [1, 0]]) & ~masked
    return time_step._replace(
        step_type=tf.where(starts, ts.StepType.FIRST, time_step.step_type)
    )


def whole_sequence(time_step: ts.TimeStep, next_time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns all `T` steps of `T - 1` consecutive transitions.

    Returns:
      A `TimeStep` `[B, T, ...]`: the first step of `time_step`, then all steps of
      `next_time_step`.
    """
    reached = next_time_step._replace(
        step_type=tf.where(
            time_step.is_last(), ts.StepType.FIRST, next_time_step.step_type
        )
    )
    return tf.nest.map_structure(
        lambda first, others: tf.concat([first[:, :1], others], axis=1),
        time_step,
        reached,
    )
