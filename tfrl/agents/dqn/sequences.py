"""Builds the sequences that a recurrent Q-network is unrolled over.

A network with a memory values a step by all that led to it. So the next steps, too, are
valued after the steps before them, from the first one of the sequence on.
"""

from __future__ import annotations

import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def unroll(transition: trajectory.Transition) -> trajectory.Transition:
    """Returns the transitions `[B, T - 1]` with the time steps to unroll networks over.

    Returns:
      The `Transition`, whose `time_step` is `current_steps` `[B, T - 1]`, and whose
      `next_time_step` is the `whole_sequence` `[B, T]`: its first entry is there for
      the network's memory only.
    """
    return transition._replace(
        time_step=current_steps(transition.time_step),
        next_time_step=whole_sequence(transition.time_step, transition.next_time_step),
    )


def current_steps(time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns the steps `[B, T - 1]` at which actions are taken.

    The step after a masked one, which is a boundary or cut off, starts a new sequence.
    """
    follows = tf.pad(time_step.is_last()[:, :-1], [[0, 0], [1, 0]])
    return time_step._replace(
        step_type=tf.where(follows, ts.StepType.FIRST, time_step.step_type)
    )


def whole_sequence(time_step: ts.TimeStep, next_time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns all `T` steps of `T - 1` transitions that follow each other.

    Returns:
      A `TimeStep` `[B, T, ...]`: the first of `time_step`, then `next_time_step`.
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
