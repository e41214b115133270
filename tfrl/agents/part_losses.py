"""TF-Agents' methods for the losses of an agent's parts.

Agents have these functions as methods. Each returns the loss before its weight, with
the random numbers of the next update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import transitions, updates
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.agents.actor_critic import ActorCriticAgent
    from tfrl.typing import types

REFUSED_OVERRIDES: Mapping[str, str] = {
    "critic_loss": "override _critic_loss(batch)",
    "actor_loss": "override _actor_loss(batch)",
}


def critic_loss(
    self: ActorCriticAgent,
    time_steps: ts.TimeStep,
    actions: types.NestedTensor,
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
    actions: types.NestedTensor,
    next_time_steps: ts.TimeStep,
    td_errors_loss_fn: types.LossFn | None = None,
    gamma: float | None = None,
    reward_scale_factor: float | None = None,
    weights: tf.Tensor | None = None,
    training: bool = False,
) -> tf.Tensor:
    """Returns the mean loss of all critics together, a scalar.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: See `critic_loss`.
      actions: See `critic_loss`.
      next_time_steps: See `critic_loss`.
      td_errors_loss_fn: The agent's own loss function, which TF-Agents' callers pass,
        or None.
      gamma: The discount; None takes the agent's discount.
      reward_scale_factor: The factor of the rewards; None takes the agent's factor.
      weights: See `TFAgent.train`.
      training: Whether the critics are applied as in training.

    Raises:
      ValueError: `td_errors_loss_fn` is not the agent's own.
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
    data = self._as_data.of(transition, gamma, reward_scale_factor)
    return self._critic_loss(_part_batch(self, "critic", data, weights, training))[0]


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
    """Returns the temperature's mean loss, a scalar, even if the temperature is fixed.

    Args:
      self: The agent; this function is one of its methods.
      time_steps: See `critic_loss`.
      weights: See `TFAgent.train`.
      training: Whether the actor is applied as in training.
    """
    batch = _batch_at(self, "alpha", time_steps, weights, training)
    return self._alpha_loss(batch)[0]


def _batch_at(
    agent: ActorCriticAgent,
    label: str,
    time_steps: ts.TimeStep,
    weights: tf.Tensor | None,
    training: bool,
) -> updates.Batch:
    """Returns a part's batch of time steps alone."""
    transition = trajectory.Transition(
        time_steps, policy_step.PolicyStep(()), time_steps
    )
    data = agent._as_data.of(transition)
    return _part_batch(agent, label, data, weights, training)


def _part_batch(
    agent: ActorCriticAgent,
    label: str,
    data: transitions.Transitions,
    weights: tf.Tensor | None,
    training: bool,
) -> updates.Batch:
    """Returns the batch of one part, or of all if there is no such part."""
    batch = agent._batch_of(data, weights, training)
    each = {part.label: own for part, own in agent._in_turn(batch)}
    return each.get(label, batch)
