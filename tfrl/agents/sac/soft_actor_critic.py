"""`SoftActorCriticAgent`, the base class of SAC for continuous and discrete actions."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import actor_critic, tf_agent
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks, optimizers, seeds, summaries, variables

if TYPE_CHECKING:
    from tfrl.typing import types


class SacLossInfo(NamedTuple):
    """The parts of the loss, whose sum it is, and errors per example.

    Attributes:
      critic_loss: The critics' loss times `critic_loss_weight`, a scalar.
      actor_loss: The actor's loss times `actor_loss_weight`, a scalar.
      alpha_loss: The temperature's loss times `alpha_loss_weight`, a scalar; 0 if the
        temperature is fixed.
      td_loss: The critics' loss of each example, `[B]`, before weighting; 0 where
        masked.
      td_error: Target minus prediction, `[B]` or `[B, T - 1]`, of the critic that is
        farthest off; 0 where masked.
    """

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class SoftActorCriticAgent(actor_critic.ActorCriticAgent):
    """Base class of agents that maximise rewards and the entropy of their policy.

    An update first changes the critics, then the actor (which sees the new critics),
    and then the temperature (which sees the new actor). Each of the three draws actions
    of its own, by seeds that depend on the agent's seed and the train step counter
    alone.

    The constructor of a subclass calls that of `ActorCriticAgent` and then
    `_setup_temperature`.
    """

    # TF-Agents' methods for the three losses.
    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "critic_loss": (
            "override _td_error(predictions, transitions, next_values) or "
            "_compute_next_values(next_time_step, seed)"
        ),
        "actor_loss": "override _compute_actor_loss(time_step, seed, training)",
        "alpha_loss": "override _compute_entropy(time_step, seed, training)",
    }

    _log_alpha: tf.Variable
    _alpha_optimizer: optimizers.OptimizerAdapter | None
    _target_entropy: float
    _use_log_alpha: bool
    _loss_weights: tuple[float, float, float]

    def _setup_temperature(
        self,
        alpha_optimizer: types.Optimizer | None,
        initial_log_alpha: float,
        target_entropy: float,
        use_log_alpha: bool,
        loss_weights: tuple[float, float, float],
    ) -> None:
        """Makes the variable of the temperature and its optimizer.

        Args:
          alpha_optimizer: The optimizer of the temperature's logarithm; None keeps it.
          initial_log_alpha: The initial logarithm of the temperature.
          target_entropy: The entropy that the temperature is adapted to.
          use_log_alpha: See `losses.temperature_loss`.
          loss_weights: The weights of the losses of the critics, the actor and the
            temperature.
        """
        number_checks.check_number(
            "initial_log_alpha", initial_log_alpha, remedy="0 is a temperature of 1"
        )
        number_checks.check_number(
            "target_entropy", target_entropy, remedy="None takes the default"
        )
        self._log_alpha = tf.Variable(
            initial_log_alpha, dtype=tf.float32, name="initial_log_alpha"
        )
        self._alpha_optimizer = (
            None
            if alpha_optimizer is None
            else optimizers.OptimizerAdapter(
                alpha_optimizer, [self._log_alpha], self._clip
            )
        )
        self._target_entropy = target_entropy
        self._use_log_alpha = use_log_alpha
        self._loss_weights = loss_weights

    @abc.abstractmethod
    def _compute_next_values(
        self, next_time_step: ts.TimeStep, seed: tf.Tensor
    ) -> tf.Tensor:
        """Returns the targets' soft values of the next steps, `[B]` or `[B, T]`."""

    @abc.abstractmethod
    def _compute_actor_loss(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns the actor's loss of each example, `[B]` or `[B, T - 1]`."""

    @abc.abstractmethod
    def _compute_entropy(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns the policy's entropy, or samples of it, `[B]` or `[B, T - 1]`."""

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns learning rates, the temperature `alpha`, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          The scalars of `ActorCriticAgent.diagnose`, `alpha`, `alpha_learning_rate`,
          and of a batch the mean `entropy`.
        """
        values = super().diagnose(experience)
        values["alpha"] = self._alpha()
        if self._alpha_optimizer is not None:
            rate = self._alpha_optimizer.learning_rate()
            values |= {} if rate is None else {"alpha_learning_rate": rate}
        if experience is not None:
            transitions = self._transitions(experience)
            *_, seed = self._next_seeds(3)
            entropy = self._compute_entropy(transitions.time_step, seed, training=False)
            values["entropy"] = losses.masked_mean(entropy, transitions.valid)
        return values

    def _alpha(self) -> tf.Tensor:
        return tf.exp(tf.convert_to_tensor(self._log_alpha))

    def _variables(self) -> list[tf.Variable]:
        optimizer = self._alpha_optimizer
        return [
            *super()._variables(),
            *variables.as_tf_variables(
                [self._log_alpha, *(optimizer.variables() if optimizer else ())]
            ),
        ]

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        seed: int | tf.Tensor | None = None,
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)
        for_critics, for_actor, for_alpha = self._loss_seeds(seed)
        critic_loss, critic = self._update_critics(transitions, weights, for_critics)
        actor_loss, _ = self._minimize(
            lambda: self._actor_part(transitions, weights, for_actor, training=True),
            [self._actor_network],
            self._actor_optimizer,
        )
        alpha_loss = self._update_alpha(transitions, weights, for_alpha)
        self._finish(critic_loss, actor_loss, alpha_loss)
        return self._loss_info(critic_loss, actor_loss, alpha_loss, critic)

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
        seed: int | tf.Tensor | None = None,
    ) -> tf_agent.LossInfo:
        """Returns the sum of the three losses, all of the current weights.

        In an update the actor's loss is that after the critics' update, and the
        temperature's that after the actor's.

        Args:
          experience: See `TFAgent.train`.
          weights: See `TFAgent.train`.
          training: See `TFAgent.loss`.
          seed: The seed of the actions; None takes that of the next update.
        """
        transitions = self._transitions(experience)
        for_critics, for_actor, for_alpha = self._loss_seeds(seed)
        critic_loss, critic = self._critic_part(
            transitions, weights, for_critics, training
        )
        actor_loss, _ = self._actor_part(transitions, weights, for_actor, training)
        alpha_loss = self._alpha_part(transitions, weights, for_alpha, training)
        return self._loss_info(critic_loss, actor_loss, alpha_loss, critic)

    def _loss_seeds(self, seed: int | tf.Tensor | None) -> list[tf.Tensor]:
        return self._next_seeds(3) if seed is None else seeds.split_seed(seed, 3)

    def _critic_part(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        seed: tf.Tensor,
        training: bool,
    ) -> tuple[tf.Tensor, actor_critic.CriticLoss]:
        next_values = self._at_next_steps(
            self._compute_next_values(transitions.next_time_step, seed)
        )
        critic = self._compute_critic_loss(transitions, next_values, weights, training)
        return self._loss_weights[0] * critic.loss, critic

    def _actor_part(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        seed: tf.Tensor,
        training: bool,
    ) -> tuple[tf.Tensor, None]:
        loss = self._compute_actor_loss(transitions.time_step, seed, training)
        mean = self._mean(
            loss, transitions, weights, regularization=self._actor_network.losses
        )
        return self._loss_weights[1] * mean, None

    def _alpha_part(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        seed: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        if self._alpha_optimizer is None:
            return tf.constant(0.0)
        loss = losses.temperature_loss(
            tf.convert_to_tensor(self._log_alpha),
            self._compute_entropy(transitions.time_step, seed, training),
            self._target_entropy,
            self._use_log_alpha,
        )
        return self._loss_weights[2] * self._mean(loss, transitions, weights)

    def _mean(
        self,
        loss: tf.Tensor,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        regularization: Sequence[tf.Tensor] = (),
    ) -> tf.Tensor:
        """Returns the mean of the examples' losses, with 0 for masked transitions."""
        per_example = self._masked(loss, transitions.valid)
        mean = losses.aggregate_losses(per_example, weights).total_loss
        return tf.add_n([mean, *regularization])

    def _update_critics(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        seed: tf.Tensor,
    ) -> tuple[tf.Tensor, Any]:
        """Updates the critics once; returns their loss, and its details."""
        return self._minimize(
            lambda: self._critic_part(transitions, weights, seed, training=True),
            self._critic_networks,
            self._critic_optimizer,
        )

    def _update_alpha(
        self,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Updates the temperature once, unless it is fixed; returns its loss."""
        if self._alpha_optimizer is None:
            return self._alpha_part(transitions, weights, seed, training=True)
        loss, _ = self._gradient_step(
            lambda: (
                self._alpha_part(transitions, weights, seed, training=True),
                None,
            ),
            [self._log_alpha],
            self._alpha_optimizer,
        )
        return loss

    def _loss_info(
        self,
        critic_loss: tf.Tensor,
        actor_loss: tf.Tensor,
        alpha_loss: tf.Tensor,
        critic: actor_critic.CriticLoss,
    ) -> tf_agent.LossInfo:
        """Adds up the losses, and writes them as summaries under TF-Agents' tags."""
        info = SacLossInfo(
            critic_loss, actor_loss, alpha_loss, critic.td_loss, critic.td_error
        )
        if self.summaries_enabled:
            summaries.summarize_scalar_dict(
                {
                    "critic_loss": critic_loss,
                    "actor_loss": actor_loss,
                    "alpha_loss": alpha_loss,
                    "alpha": self._alpha(),
                },
                step=self.train_step_counter,
            )
        return tf_agent.LossInfo(critic_loss + actor_loss + alpha_loss, info)
