"""The priorities of prioritized replay, from the losses of an agent."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent


def of_examples(loss_info: tf_agent.LossInfo, agent: tf_agent.TFAgent) -> tf.Tensor:
    """Returns the absolute TD errors of the examples, or their absolute losses, `[B]`.

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
