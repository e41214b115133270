"""The update on a batch of a replay buffer, and the priorities that follow from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib


def train_on(
    agent: tf_agent.TFAgent,
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
    experience: Any,
    info: Any,
    at_buffer: Callable[
        [], contextlib.AbstractContextManager[Any]
    ] = contextlib.nullcontext,
) -> tf_agent.LossInfo:
    """Trains on a batch; sets its priorities if the buffer has any.

    Args:
      agent: The agent.
      replay_buffer: The buffer that the batch comes from; None if it has no priorities.
      experience: The examples of the batch.
      info: What the buffer knows of them.
      at_buffer: Returns the device scope of the buffer.

    Returns:
      The `LossInfo`, whose loss is computed after the priorities are set.
    """
    if replay_buffer is None or not replay_buffer.is_prioritized:
        return agent.train(experience)
    loss_info = agent.train(experience, weights=info.weights)
    priorities = priorities_of(loss_info, agent)
    # The next draw may read the train step too, for an annealed exponent.
    counted = tf.control_dependencies([agent.train_step_counter.read_value()])
    with counted, at_buffer():
        updated = replay_buffer.update_priorities(info.keys, priorities)
    with tf.control_dependencies([updated]):
        return loss_info._replace(loss=tf.identity(loss_info.loss))


def priorities_of(loss_info: tf_agent.LossInfo, agent: tf_agent.TFAgent) -> tf.Tensor:
    """Returns the absolute TD errors of the examples, or their absolute losses, `[B]`.

    Of errors `[B, T]`, the largest over time is taken.

    Raises:
      ValueError: The agent returns neither.
    """
    for name in ("td_error", "td_loss"):
        errors: Any = getattr(loss_info.extra, name, None)
        if tf.is_tensor(errors) and errors.shape.rank:
            sizes = tf.abs(errors)
            return tf.reduce_max(sizes, axis=list(range(1, errors.shape.rank)))
    raise ValueError(
        f"replay_buffer: got a prioritized one, but {type(agent).__name__} returns "
        "neither td_error nor td_loss of each example in LossInfo.extra, "
        "expected one of them, to compute priorities from. Use a "
        "TFUniformReplayBuffer."
    )
