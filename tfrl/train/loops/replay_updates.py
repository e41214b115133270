"""The update on a batch of a replay buffer, and the new priorities of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib

if TYPE_CHECKING:
    from tfrl.typing import types

# Returns the priorities `[B]` of examples from their TD errors, `[B]` or `[B, T]`.
PriorityFn = Callable[[tf.Tensor], tf.Tensor]


def train_on(
    agent: tf_agent.TFAgent,
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
    experience: types.NestedTensor,
    info: Any,
    at_buffer: Callable[
        [], contextlib.AbstractContextManager[Any]
    ] = contextlib.nullcontext,
    priority_fn: PriorityFn | None = None,
) -> tf_agent.LossInfo:
    """Trains on a batch; sets its priorities, and writes what the agent refreshes.

    Args:
      agent: The agent.
      replay_buffer: The buffer from which the batch comes; None if nothing is written
        to it.
      experience: The examples of the batch.
      info: The buffer's information about the examples.
      at_buffer: Returns the device scope of the buffer.
      priority_fn: See `priorities_of`.

    Returns:
      The `LossInfo`, whose loss is computed after the buffer has changed.
    """
    if replay_buffer is not None and replay_buffer.is_prioritized:
        loss_info = agent.train(experience, weights=info.weights)
        priorities = priorities_of(loss_info, agent, priority_fn)
        # The next draw may read the train step too, for an annealed exponent.
        counted = tf.control_dependencies([agent.train_step_counter.read_value()])
        with counted, at_buffer():
            changed = replay_buffer.update_priorities(info.keys, priorities)
    elif replay_buffer is not None and refreshes(agent, replay_buffer):
        loss_info = agent.train(experience)
        fresh = agent.refreshed(experience, loss_info)
        with at_buffer():
            changed = replay_buffer.rewrite(info.keys, fresh)
    else:
        return agent.train(experience)
    with tf.control_dependencies([changed]):
        return loss_info._replace(loss=tf.identity(loss_info.loss))


def refreshes(
    agent: tf_agent.TFAgent, replay_buffer: replay_buffer_lib.ReplayBuffer
) -> bool:
    """Returns whether `train_on` writes drawn frames back."""
    return agent.refreshes_experience and replay_buffer.can_rewrite


def priorities_of(
    loss_info: tf_agent.LossInfo,
    agent: tf_agent.TFAgent,
    priority_fn: PriorityFn | None = None,
) -> tf.Tensor:
    """Returns the priorities of the examples, `[B]`.

    Args:
      loss_info: The result of the agent's `train`.
      agent: The agent, for the error.
      priority_fn: A function of the TD errors, `[B]` or `[B, T]`, or of the losses if
        the agent returns no TD errors, that returns the priorities `[B]`, such as
        `losses.sequence_priorities`. None takes the largest absolute error over time.

    Raises:
      ValueError: The agent returns neither errors nor losses of each example, or the
        function does not return one priority per example.
    """
    errors = _errors_of(loss_info, agent)
    if priority_fn is None:
        return tf.reduce_max(tf.abs(errors), axis=list(range(1, errors.shape.rank)))
    priorities = tf.convert_to_tensor(priority_fn(errors))
    if not priorities.shape.is_compatible_with(errors.shape[:1]):
        raise ValueError(
            f"priority_fn: expected one priority for each example, shape "
            f"{errors.shape[:1]}, got shape {priorities.shape}; reduce over time, as "
            "losses.sequence_priorities does."
        )
    return priorities


def _errors_of(loss_info: tf_agent.LossInfo, agent: tf_agent.TFAgent) -> tf.Tensor:
    for name in ("td_error", "td_loss"):
        errors: Any = getattr(loss_info.extra, name, None)
        if tf.is_tensor(errors) and errors.shape.rank:
            return errors
    raise ValueError(
        f"replay_buffer: got a prioritized one, but {type(agent).__name__} returns "
        "neither td_error nor td_loss of each example in LossInfo.extra, "
        "expected one of them, to compute priorities from. Use a "
        "TFUniformReplayBuffer."
    )
