"""What agents with a deterministic actor share: DDPG and TD3."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import tensorflow as tf

from tfrl import losses
from tfrl.agents import actor_critic, tf_agent
from tfrl.trajectories import time_step as ts


class DeterministicActorAgent(actor_critic.ActorCriticAgent):
    """Base class of agents whose actor returns actions, not distributions.

    `train` updates the critics first, so the actor learns from the new critics, and
    returns the losses as they were before each one's own update.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "critic_loss": (
            "override _td_error(predictions, transitions, next_values) or "
            "_compute_next_values(next_time_step)"
        ),
        "actor_loss": "override _compute_actor_loss(time_step, training)",
    }
    # The named tuple of `LossInfo.extra`.
    _info: Callable[..., Any]

    @abc.abstractmethod
    def _compute_next_values(self, next_time_step: ts.TimeStep) -> tf.Tensor:
        """Returns the targets' values of the next steps, `[B]` or `[B, T]`.

        The time steps are embedded by the target; see `ObservationEmbedding`.
        """

    @abc.abstractmethod
    def _compute_actor_loss(
        self, time_step: ts.TimeStep, training: bool
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns the actor's loss of each example, and its regularisation losses.

        The losses are `[B]` or `[B, T - 1]`; masked examples are removed later. The
        time steps are embedded by the target; see `ObservationEmbedding`.
        """

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)

        def critic_loss() -> tuple[tf.Tensor, actor_critic.CriticLoss]:
            critic = self._critic_loss(transitions, weights, training=True)
            return critic.loss, critic

        def actor_loss() -> tuple[tf.Tensor, None]:
            return self._actor_loss(transitions.time_step, weights, True), None

        def update_actor() -> tf.Tensor:
            checked, _ = self._minimize(
                actor_loss, [self._actor_network], self._actor_optimizer
            )
            return checked

        checked, critic = self._minimize(
            critic_loss, self._critic_parts, self._critic_optimizer
        )
        actor_checked = self._train_actor(update_actor)
        self._finish(checked, actor_checked)
        return self._loss_info(actor_checked, critic._replace(loss=checked))

    def _train_actor(self, update: Callable[[], tf.Tensor]) -> tf.Tensor:
        """Calls `update`, which updates the actor; returns the loss that it returns."""
        return update()

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)
        critic = self._critic_loss(transitions, weights, training)
        actor_loss = self._actor_loss(transitions.time_step, weights, training)
        return self._loss_info(actor_loss, critic)

    def _loss_info(
        self, actor_loss: tf.Tensor, critic: actor_critic.CriticLoss
    ) -> tf_agent.LossInfo:
        info = self._info(actor_loss, critic.loss, critic.td_loss, critic.td_error)
        loss = actor_loss + critic.loss
        self._write_summaries(loss, info._asdict())
        return tf_agent.LossInfo(loss, info)

    def critic_loss(
        self,
        time_steps: ts.TimeStep,
        actions: Any,
        next_time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the mean loss of all critics together, a scalar.

        Args:
          time_steps: The time steps `[B, ...]` at which the actions were taken. For
            recurrent networks, `[B, T - 1, ...]`; see `agents.sequences.unroll`.
          actions: The nest of actions, of the same outer shape.
          next_time_steps: The time steps after them; for recurrent networks all `T`.
          weights: See `TFAgent.train`.
          training: Whether the critics are applied as in training.
        """
        next_time_steps = self._normalizers.normalize_rewards(next_time_steps)
        transitions = self._masked_transitions(time_steps, actions, next_time_steps)
        return self._critic_loss(transitions, weights, training).loss

    def actor_loss(
        self,
        time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the mean of -Q(s, mu(s)), a scalar.

        Args:
          time_steps: As for `critic_loss`.
          weights: See `TFAgent.train`.
          training: Whether the actor is applied as in training.
        """
        return self._actor_loss(time_steps, weights, training)

    def _critic_loss(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        training: bool,
    ) -> actor_critic.CriticLoss:
        next_values = self._compute_next_values(
            self._embedding.target(transitions.next_time_step)
        )
        return self._compute_critic_loss(
            transitions, self._at_next_steps(next_values), weights, training
        )

    def _actor_loss(
        self, time_step: ts.TimeStep, weights: tf.Tensor | None, training: bool
    ) -> tf.Tensor:
        loss, regularization = self._compute_actor_loss(
            self._embedding.target(time_step), training
        )
        return losses.aggregate_losses(
            self._masked(loss, ~time_step.is_last()),
            weights,
            regularization_loss=regularization,
        ).total_loss
