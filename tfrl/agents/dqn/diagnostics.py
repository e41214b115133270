"""Computes the numbers that logs of DQN and its relatives hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import sequences
from tfrl.utils import schedules

if TYPE_CHECKING:
    from tfrl.agents.dqn import dqn_agent


def of_exploration(agent: dqn_agent.DqnAgent) -> dict[str, tf.Tensor]:
    """Returns the current epsilon or temperature."""
    given = {
        "epsilon": agent._epsilon_greedy,
        "temperature": agent._boltzmann_temperature,
    }
    return {
        name: tf.cast(schedules.current_value(value), tf.float32)
        for name, value in given.items()
        if value is not None
    }


def of_batch(agent: dqn_agent.DqnAgent, experience: Any) -> dict[str, tf.Tensor]:
    """Returns the numbers of a batch; the networks are applied as in evaluation.

    Returns:
      Scalars: `q_value`, the mean value of the actions taken; `td_error`, the mean size
      of the TD errors; `gradient_norm`, the norm of the gradient of all weights before
      clipping. The means are over the transitions that are not masked.
    """
    with tf.summary.record_if(False), tf.GradientTape() as tape:
        loss_info = agent.loss(experience)
    gradients = tape.gradient(loss_info.loss, agent._q_network.trainable_variables)
    transition = agent._as_transition(experience)
    valid = ~transition.time_step.is_last()
    if agent._recurrent:
        transition = sequences.unroll(transition)
    q_values = agent._compute_q_values(
        transition.time_step, transition.action_step.action
    )
    return {
        "q_value": losses.masked_mean(q_values, valid),
        "td_error": losses.masked_mean(tf.abs(loss_info.extra.td_error), valid),
        "gradient_norm": tf.cast(tf.linalg.global_norm(gradients), tf.float32),
    }
