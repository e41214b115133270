"""Builds the sequences that a recurrent network is unrolled over.

The output of a recurrent network at a step depends on all earlier steps. So the unroll
for the values of the next steps also starts at the first step of the sequence.

A sequence may begin in mid-episode. The network then starts from the state that the
policy recorded there (`first_state`), which is as old as the weights that it acted
with. The first steps may only serve to bring the state up to date (`split`): they are
the burn-in of Kapturowski et al., "Recurrent experience replay in distributed
reinforcement learning" (2019, R2D2), section 3.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl import losses
from tfrl.policies import state_recording_policy
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def first_state(info: Any, state_spec: Any) -> Any:
    """Returns the state before the first step that the policy recorded, `[B, ...]`.

    Args:
      info: The info of the actions, `[B, T, ...]`.
      state_spec: The nest of specs of the state.

    Returns:
      The state; `()` if the policy did not record it.
    """
    recorded = state_recording_policy.recorded_state(info, state_spec)
    return tf.nest.map_structure(lambda states: states[:, 0], recorded)


def split(
    transition: trajectory.Transition, num_steps: int
) -> tuple[ts.TimeStep, trajectory.Transition]:
    """Splits transitions `[B, T - 1]` into a burn-in and those to learn from.

    Args:
      transition: The transitions, which have no state.
      num_steps: The number of steps of the burn-in.

    Returns:
      The time steps of the burn-in, `[B, num_steps]`, and the transitions after it.

    Raises:
      ValueError: No transition would be left.
    """
    length = transition.time_step.step_type.shape[1]
    if length is not None and length <= num_steps:
        raise ValueError(
            f"experience: got {length + 1} frames, expected at least {num_steps + 2}: "
            f"{num_steps} of the burn-in and 2 to learn from; give the loop a longer "
            "sequence_length, or the agent a shorter burn-in."
        )
    transition = transition._replace(time_step=current_steps(transition.time_step))
    return (
        tf.nest.map_structure(lambda t: t[:, :num_steps], transition.time_step),
        tf.nest.map_structure(lambda t: t[:, num_steps:], transition),
    )


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


def n_step_sums(
    rewards: tf.Tensor, discounts: tf.Tensor, valid: tf.Tensor, n: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns each step's rewards over `n` steps, and the product of their discounts.

    The steps are fewer at the end of an episode, before a cut and at the end of the
    sequence. The value to multiply by the product is that of `after_n_steps`. Sutton
    and Barto, "Reinforcement Learning: An Introduction", 2018, equation 7.1.

    Args:
      rewards: The rewards, `[B, T - 1]`, 0 where masked.
      discounts: Gamma times the environment's discounts, like `rewards`.
      valid: False where a transition is masked, like `rewards`.
      n: The number of steps.
    """
    continues = tf.transpose(_continues(valid))
    r_t, discount_t = tf.transpose(rewards), tf.transpose(discounts)
    zeros, ones = tf.zeros_like(r_t), tf.ones_like(r_t)
    sums = losses.n_step_returns(r_t, discount_t, zeros, n, continues)
    products = losses.n_step_returns(zeros, discount_t, ones, n, continues)
    return tf.transpose(sums), tf.transpose(products)


def after_n_steps(values: tf.Tensor, valid: tf.Tensor, n: int) -> tf.Tensor:
    """Returns the values of the states that each step's n-step return ends with.

    Args:
      values: Numbers of the states that each step reaches, `[B, T - 1, ...]`.
      valid: False where a transition is masked, `[B, T - 1]`.
      n: See `n_step_sums`.
    """
    continues = _continues(valid)[(..., *[tf.newaxis] * (values.shape.rank - 2))]
    result = values
    for _ in range(n - 1):
        following = tf.concat([result[:, 1:], values[:, -1:]], axis=1)
        result = tf.where(continues, following, values)
    return result


def _continues(valid: tf.Tensor) -> tf.Tensor:
    """Returns whether the next transition continues a transition's episode."""
    return valid & tf.pad(valid[:, 1:], [[0, 0], [0, 1]])
