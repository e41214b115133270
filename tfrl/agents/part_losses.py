"""TF-Agents' methods for the losses of an agent's parts.

Agents have these functions as methods. Each returns the loss before its weight, with
the random numbers of the next update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import sequences, updates
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.agents.actor_critic import ActorCriticAgent


def critic_loss(
    self: ActorCriticAgent,
    time_steps: ts.TimeStep,
    actions: Any,
    next_time_steps: ts.TimeStep,
    weights: tf.Tensor | None = None,
    training: bool = False,
) -> tf.Tensor:
    """Returns the mean loss of all critics together, a scalar.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: The time steps `[B, ...]` at which the actions were taken; `[B, T - 1,
        ...]` for recurrent networks.
      actions: The nest of actions, of the same outer shape.
      next_time_steps: The time steps after them, of the same outer shape.
      weights: See `TFAgent.train`.
      training: Whether the critics are applied as in training.
    """
    return soft_critic_loss(
        self,
        time_steps,
        actions,
        next_time_steps,
        weights=weights,
        training=training,
    )


def actor_loss(
    self: ActorCriticAgent,
    time_steps: ts.TimeStep,
    weights: tf.Tensor | None = None,
    training: bool = False,
) -> tf.Tensor:
    """Returns the actor's mean loss, a scalar.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: As for `critic_loss`.
      weights: See `TFAgent.train`.
      training: Whether the actor is applied as in training.
    """
    batch = _batch_at(self, "actor", time_steps, weights, training)
    return self._actor_loss(batch)[0]


def soft_critic_loss(
    self: ActorCriticAgent,
    time_steps: ts.TimeStep,
    actions: Any,
    next_time_steps: ts.TimeStep,
    td_errors_loss_fn: Any = None,
    gamma: float | None = None,
    reward_scale_factor: float | None = None,
    weights: tf.Tensor | None = None,
    training: bool = False,
) -> tf.Tensor:
    """Returns the mean loss of all critics together, a scalar.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: See `critic_loss`.
      actions: See there.
      next_time_steps: See there.
      td_errors_loss_fn: The agent's own, as TF-Agents' callers give it, or None.
      gamma: The discount; None is the agent's.
      reward_scale_factor: The factor of the rewards; None is the agent's.
      weights: See `TFAgent.train`.
      training: Whether the critics are applied as in training.

    Raises:
      ValueError: `td_errors_loss_fn` is another than the agent's.
    """
    if td_errors_loss_fn not in (None, self._td_errors_loss_fn):
        raise ValueError(
            f"td_errors_loss_fn: got {td_errors_loss_fn}, expected None or the agent's "
            f"own, {self._td_errors_loss_fn}; give it to the agent's constructor."
        )
    next_time_steps = self._normalizers.normalize_rewards(next_time_steps)
    transition = trajectory.Transition(
        time_steps, policy_step.PolicyStep(actions), next_time_steps
    )
    if self._recurrent:
        transition = sequences.unroll(transition)
    transitions = self._masked_transitions(
        transition.time_step,
        actions,
        transition.next_time_step,
        gamma,
        reward_scale_factor,
    )
    batch = self._batch_of("critic", transitions, weights, training)
    return self._critic_loss(batch)[0]


def soft_actor_loss(
    self: ActorCriticAgent,
    time_steps: ts.TimeStep,
    weights: tf.Tensor | None = None,
    training: bool = True,
) -> tf.Tensor:
    """Returns the actor's mean loss, a scalar.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: See `critic_loss`.
      weights: See `TFAgent.train`.
      training: Whether the actor is applied as in training.
    """
    return actor_loss(self, time_steps, weights, training)


def alpha_loss(
    self: Any,
    time_steps: ts.TimeStep,
    weights: tf.Tensor | None = None,
    training: bool = False,
) -> tf.Tensor:
    """Returns the temperature's mean loss, a scalar, also if the temperature is fixed.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: See `critic_loss`.
      weights: See `TFAgent.train`.
      training: Whether the actor is applied as in training.
    """
    batch = _batch_at(self, "alpha", time_steps, weights, training)
    return self._alpha_loss(batch)[0]


def mean_alpha_loss(
    self: Any, batch: updates.Batch
) -> tuple[tf.Tensor, dict[str, Any]]:
    """Returns the temperature's mean loss, by `_compute_entropy`, and no details.

    Args:
      self: The agent; this function is its `_alpha_loss`.
      batch: The batch.
    """
    entropy = self._compute_entropy(
        self._embedding.target(batch.transitions.time_step),
        batch.seed,
        batch.training,
    )
    return self._mean(self._temperature.loss(entropy), batch), {}


def _batch_at(
    agent: ActorCriticAgent,
    label: str,
    time_steps: ts.TimeStep,
    weights: tf.Tensor | None,
    training: bool,
) -> updates.Batch:
    """Returns a part's batch of time steps alone."""
    if agent._recurrent:
        time_steps = sequences.current_steps(time_steps)
    transitions = updates.Transitions(
        time_steps,
        action=(),
        next_time_step=time_steps,
        reward=time_steps.reward,
        discount=time_steps.discount,
        valid=~time_steps.is_last(),
    )
    return agent._batch_of(label, transitions, weights, training)
