"""Writes the parts of a DQN loss under TF-Agents' tags."""

from __future__ import annotations

import tensorflow as tf

from tfrl import losses
from tfrl.agents import tf_agent
from tfrl.utils import summaries


def write_losses(
    agent: tf_agent.TFAgent,
    aggregated: losses.AggregatedLosses,
    td_loss: tf.Tensor,
    td_error: tf.Tensor,
) -> None:
    """Writes the scalar losses, and in debug mode histograms of losses and errors."""
    if not agent.summaries_enabled:
        return
    reg_loss = aggregated.regularization
    summaries.summarize_scalar_dict(
        {
            "td_loss": aggregated.weighted,
            "reg_loss": 0.0 if reg_loss is None else reg_loss,
            "total_loss": aggregated.total_loss,
        },
        step=agent.train_step_counter,
    )
    if agent.debug_summaries:
        summaries.summarize_tensor_dict(
            {"loss/td_error": td_error, "loss/td_loss": td_loss},
            step=agent.train_step_counter,
        )


def write_q_values(
    agent: tf_agent.TFAgent, q_values: tf.Tensor, next_q_values: tf.Tensor
) -> None:
    """Writes histograms of Q of the actions and of the next states, in debug mode."""
    if agent.debug_summaries:
        summaries.summarize_tensor_dict(
            {
                "loss/q_values": q_values,
                "loss/next_q_values": next_q_values,
                "loss/diff_q_values": q_values - next_q_values,
            },
            step=agent.train_step_counter,
        )
