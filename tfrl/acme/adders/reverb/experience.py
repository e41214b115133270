"""Turns the items of adders into the experience that agents train on."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.acme import types
from tfrl.acme.adders.reverb import base
from tfrl.losses import returns
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

_FIRST, _MID, _LAST = ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST


def to_experience(items: Any) -> trajectory.Transition | trajectory.Trajectory:
    """Returns sampled items in the form that agents train on.

        dataset = TrajectoryDataset.from_table_signature(...).batch(256)
        for sample in dataset:
            agent.train(to_experience(sample.data))

    **Transitions** `[B, ...]` become a `Transition` `[B, ...]`. Create the agent with
    `n_step_update=1` and the adder's discount as `gamma`: an item has the same reward
    and discount as `trajectory.to_n_step_transition` computes from frames, and the loss
    multiplies the discount by `gamma` once more.

    **Sequences** `[B, T, ...]`, including whole episodes, become a `Trajectory`
    `[B, T, ...]`. The row of an episode's last observation becomes a boundary, and so
    do the rows of zeros after it, so that losses mask them. The items do not mark these
    rows, so they are recognised: action, reward, discount and extras are zero from such
    a row to the next start of an episode, or to the end of the sequence. But if the
    observation after the first of these rows is not zero, that row is a step: a
    termination whose action and reward are zero; in padded items, only a termination in
    an observation of zeros is mistaken for the end of a truncated episode. Padding
    other than zeros is not recognised.

    Extras become the policy's info. Rewards and discounts become float32.

    Args:
      items: A `Transition` or a `Trajectory` of the adders (or a named tuple with
        the same fields), of batched tensors or arrays.

    Raises:
      TypeError: If `items` is of another type.
    """
    fields = getattr(items, "_fields", None)
    if fields not in (types.Transition._fields, base.Trajectory._fields):
        raise TypeError(
            f"items: got {type(items).__name__}, expected a Transition or a "
            "Trajectory of an adder; pass sample.data of a table with the "
            "signature of the adder."
        )
    items = tf.nest.map_structure(tf.convert_to_tensor, items)
    items = items._replace(
        **{
            name: tf.nest.map_structure(
                lambda leaf: tf.cast(leaf, tf.float32), getattr(items, name)
            )
            for name in ("reward", "discount")
        }
    )
    if fields == types.Transition._fields:
        return _to_transition(items)
    return _to_trajectory(items)


def _to_transition(items: Any) -> trajectory.Transition:
    mid = tf.fill(tf.shape(items.discount), _MID)
    return trajectory.Transition(
        time_step=ts.TimeStep(
            step_type=mid,
            reward=tf.nest.map_structure(tf.zeros_like, items.reward),
            discount=tf.zeros_like(items.discount),
            observation=items.observation,
        ),
        action_step=policy_step.PolicyStep(items.action, (), items.extras),
        next_time_step=ts.TimeStep(
            step_type=tf.where(tf.equal(items.discount, 0), _LAST, mid),
            reward=items.reward,
            discount=items.discount,
            observation=items.next_observation,
        ),
    )


def _to_trajectory(items: Any) -> trajectory.Trajectory:
    starts = items.start_of_episode
    step_type = tf.where(
        _is_after_end(items),
        _LAST,
        tf.where(starts, _FIRST, tf.fill(tf.shape(starts), _MID)),
    )
    # The row after the last one is not known.
    after = tf.where(tf.equal(items.discount[:, -1:], 0), _LAST, _MID)
    return trajectory.Trajectory(
        step_type=step_type,
        observation=items.observation,
        action=items.action,
        policy_info=items.extras,
        next_step_type=tf.concat([step_type[:, 1:], after], axis=1),
        reward=items.reward,
        discount=items.discount,
    )


def _is_after_end(items: Any) -> tf.Tensor:
    """Returns whether each row has no action, because the episode is over, `[B, T]`."""
    starts = items.start_of_episode
    nothing = tf.zeros_like(starts[:, :1])
    is_empty = _is_zero((items.action, items.reward, items.discount, items.extras))
    ends = tf.concat([starts[:, 1:], ~nothing], axis=1)  # Of episodes and sequences.
    # Whether this row and all up to the next end are empty: x_t = e_t (end_t or x_t+1).
    in_tail = returns.discounted_returns(
        tf.transpose(tf.cast(is_empty & ends, tf.float32)),
        tf.transpose(tf.cast(is_empty & ~ends, tf.float32)),
    )
    in_tail = tf.transpose(in_tail) > 0
    tail_before = tf.concat([nothing, in_tail[:, :-1]], axis=1) & ~starts
    sees_more = tf.concat([~_is_zero(items.observation)[:, 1:], nothing], axis=1)
    is_step = starts | (~tail_before & sees_more & ~ends)
    return in_tail & ~is_step


def _is_zero(nest: Any) -> tf.Tensor:
    """Returns whether all leaves `[B, T, ...]` of each row are zero, `[B, T]`."""
    leaves = [
        tf.reduce_all(
            tf.equal(leaf, tf.zeros_like(leaf)), axis=list(range(2, leaf.shape.rank))
        )
        for leaf in tf.nest.flatten(nest)
    ]
    return tf.reduce_all(tf.stack(leaves), axis=0)
