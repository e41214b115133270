"""What recurrent Q-networks are shown of a sequence of transitions.

A network with a memory values a step by all that led to it, so it is shown whole
sequences: the next steps too are valued after the steps before them, from the first on.
"""

from __future__ import annotations

import tensorflow as tf

from tfrl.trajectories import time_step as ts


def current_steps(time_step: ts.TimeStep) -> ts.TimeStep:
    """The steps `[B, T-1]` that actions are taken at, each with what precedes it.

    The step after one that is masked, being a boundary or cut off, begins anew.
    """
    follows = tf.pad(time_step.is_last()[:, :-1], [[0, 0], [1, 0]])
    return time_step._replace(
        step_type=tf.where(follows, ts.StepType.FIRST, time_step.step_type)
    )


def whole_sequence(time_step: ts.TimeStep, next_time_step: ts.TimeStep) -> ts.TimeStep:
    """All the `T` steps of `T - 1` transitions that follow each other.

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
