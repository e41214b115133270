"""What off-policy agents with an actor, critics and target networks share.

Critics are networks of pairs of observations and actions. Every loss is a mean over the
`B` examples in which masked transitions (boundaries, and steps before a cut) count as
0, so that they change no weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    data_converter,
    observation_embedding,
    sequences,
    target_networks,
    tf_agent,
)
from tfrl.losses import masking
from tfrl.policies import tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import (
    common,
    optimizers,
    seeds,
    summaries,
    variables,
)

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class Transitions(NamedTuple):
    """Transitions for the losses, `[B, ...]`.

    For recurrent networks all shapes are `[B, T - 1, ...]`, except that
    `next_time_step` holds all `T` steps; see `sequences.unroll`.

    Attributes:
      time_step: The time steps at which the actions were taken.
      action: The nest of actions.
      next_time_step: The time steps after them.
      reward: The rewards, times `reward_scale_factor`; 0 where masked.
      discount: Gamma times the environment's discounts; 0 where masked.
      valid: False where a transition is masked.
    """

    time_step: ts.TimeStep
    action: Any
    next_time_step: ts.TimeStep
    reward: tf.Tensor
    discount: tf.Tensor
    valid: tf.Tensor


class CriticLoss(NamedTuple):
    """The loss of one or several critics.

    Attributes:
      loss: A scalar, with weights and regularisation.
      td_loss: The loss of each example, summed over the critics, `[B]`; 0 where masked.
        For recurrent networks it is summed over time.
      td_error: Target minus prediction, `[B]` or `[B, T - 1]`, of the critic that is
        farther off; 0 where masked.
    """

    loss: tf.Tensor
    td_loss: tf.Tensor
    td_error: tf.Tensor


def distributional_td_error(
    predictions: Any, transitions: Transitions, next_values: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cross entropies and the differences of the means, each `[B]`.

    Args:
      predictions: The critic's `DiscreteValuedDistribution`, `[B]`.
      transitions: The transitions.
      next_values: The distribution of the values of the next steps, `[B]`.
    """
    reward, discount = transitions.reward, transitions.discount
    td_loss = losses.categorical(predictions, reward, discount, next_values)
    td_error = losses.td_error(predictions.mean(), reward, discount, next_values.mean())
    return td_loss, td_error


class ActorCriticAgent(tf_agent.TFAgent):
    """Base class of off-policy agents with an actor, critics and target networks.

    It converts experience, computes the critics' loss, applies gradients, and updates
    the target networks. A subclass builds networks and policies, and writes `_loss` and
    `_train`.
    """

    # Makes a function that clips gradients of `gradient_clipping`.
    _clip_to = staticmethod(optimizers.each_to_norm)

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy: tf_policy.TFPolicy,
        collect_policy: tf_policy.TFPolicy,
        *,
        actor_network: Any,
        critic_networks: Sequence[Any],
        target_pairs: Sequence[tuple[Any, Any]],
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        target_update_tau: Any,
        target_update_period: Any,
        td_errors_loss_fn: types.LossFn | None,
        gamma: Any,
        reward_scale_factor: Any,
        n_step_update: int,
        gradient_clipping: float | None,
        debug_summaries: bool,
        summarize_grads_and_vars: bool,
        train_step_counter: tf.Variable | None,
        name: str | None,
        seed: int | None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        embedding: observation_embedding.ObservationEmbedding | None = None,
    ) -> None:
        """Keeps the networks, and makes the optimizers' variables.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded floating specs.
          policy: The policy to deploy and evaluate.
          collect_policy: The policy that explores.
          actor_network: A built network that maps observations to actions or their
            distributions.
          critic_networks: Built networks that map pairs of observations and actions to
            values `[B]`.
          target_pairs: Built networks and their targets, as `target_networks` makes
            them.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of all critics; None as well then.
          target_update_tau: The step size of the targets' soft update; 1 copies the
            weights.
          target_update_period: The number of train steps between updates of the
            targets.
          td_errors_loss_fn: A loss of (targets, predictions), element by element; Huber
            if None.
          gamma: The discount factor.
          reward_scale_factor: The factor by which the rewards are multiplied.
          n_step_update: The number `n` of steps in the return; `train` then takes
            experience with `T = n + 1`. It must be 1 if a network is recurrent.
          gradient_clipping: The largest norm of each variable's gradient.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          seed: Seed of the random numbers in the losses; None draws it.
          observation_normalizer: See `TFAgent`.
          reward_normalizer: See `TFAgent`.
          embedding: What the actor and the critics see of the observations; they see
            the observations themselves if None. The critics' optimizer trains it.
        """
        checks.check_gamma(gamma)
        checks.check_scale_of_rewards(reward_scale_factor)
        checks.check_gradient_clipping(gradient_clipping)
        checks.check_target_update(target_update_tau, target_update_period)
        if embedding is None:
            embedding = observation_embedding.ObservationEmbedding(
                None, time_step_spec.observation
            )
        networks = [actor_network, *critic_networks]
        self._recurrent = any(tf.nest.flatten(n.state_spec) for n in networks)
        checks.check_n_step_update(n_step_update, self._recurrent)
        for critic in critic_networks:
            self._check_critic(critic)
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            train_sequence_length=None if self._recurrent else n_step_update + 1,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._actor_network = actor_network
        self._critic_networks = list(critic_networks)
        self._embedding = embedding
        # All that the critics' loss trains.
        self._critic_parts = [*critic_networks, *embedding.networks]
        self._target_pairs = [*target_pairs, *embedding.target_pairs]
        self._clip = self._clip_to(gradient_clipping)
        self._actor_optimizer = optimizers.OptimizerAdapter(
            actor_optimizer, trainable_variables([actor_network]), self._clip
        )
        self._critic_optimizer = optimizers.OptimizerAdapter(
            critic_optimizer, trainable_variables(self._critic_parts), self._clip
        )
        self._td_errors_loss_fn = td_errors_loss_fn or common.element_wise_huber_loss
        self._gamma = gamma
        self._reward_scale_factor = reward_scale_factor
        self._update_target = self._get_target_updater(
            target_update_tau, target_update_period
        )
        if seed is None:
            seed = seeds.draw_number()
        self._seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
        self._as_transition = (
            data_converter.AsTransition(self.data_context, squeeze_time_dim=False)
            if self._recurrent
            else data_converter.AsNStepTransition(
                self.data_context, gamma=gamma, n=n_step_update
            )
        )

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rates, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          Scalars: `learning_rate` of the critics and `actor_learning_rate`; of a batch,
          `q_value`, the mean of the first critic's values, and `td_error`, the mean
          size of the TD errors, over the transitions that are not masked.
        """
        rates = {
            "learning_rate": self._critic_optimizer.learning_rate(),
            "actor_learning_rate": self._actor_optimizer.learning_rate(),
        }
        values = {name: rate for name, rate in rates.items() if rate is not None}
        if experience is not None:
            with tf.summary.record_if(False):
                extra = self.loss(experience).extra
            transitions = self._transitions(experience)
            values["q_value"] = losses.masked_mean(
                self._q_values(transitions), transitions.valid
            )
            values["td_error"] = losses.masked_mean(
                tf.abs(extra.td_error), transitions.valid
            )
        return values

    def _check_critic(self, critic: Any) -> None:
        """Raises a ValueError unless the critic's output is one float an example."""
        spec = critic.create_variables()
        if not (
            isinstance(spec, tf.TensorSpec)
            and spec.shape.rank == 0
            and spec.dtype.is_floating
        ):
            raise ValueError(
                f"critic network {critic.name!r}: expected one float for each pair of "
                f"observation and action, shape [B], got {spec}; use a CriticNetwork, "
                "or squeeze the last dimension."
            )

    def _get_target_updater(self, tau: Any = 1.0, period: Any = 1) -> Callable[[], Any]:
        """Returns a callable that `_train` calls once in each update."""
        return target_networks.make_updater(self._target_pairs, tau, period)

    def _initialize(self) -> None:
        target_networks.copy_weights(self._target_pairs)

    def _variables(self) -> list[tf.Variable]:
        networks = [
            self._actor_network,
            *self._critic_parts,
            *(target for _, target in self._target_pairs),
        ]
        return variables.as_tf_variables(
            [
                *(v for network in networks for v in network.variables),
                *self._actor_optimizer.variables(),
                *self._critic_optimizer.variables(),
                *getattr(self._update_target, "variables", tuple)(),
                self._seed,
            ]
        )

    def _next_seeds(self, num: int) -> list[tf.Tensor]:
        """Returns the seeds of the current update's losses, int64 `[2]` each.

        They depend on the agent's seed and the train step counter alone.
        """
        counter = tf.cast(self.train_step_counter, tf.int64)
        return seeds.split_seed(tf.stack([self._seed, counter]), num)

    def _transitions(self, experience: Any) -> Transitions:
        """Converts experience, and masks the rewards and discounts."""
        transition = self._as_transition(experience)
        if self._recurrent:
            transition = sequences.unroll(transition)
        return self._masked_transitions(
            transition.time_step,
            transition.action_step.action,
            transition.next_time_step,
        )

    def _masked_transitions(
        self, time_step: ts.TimeStep, action: Any, next_time_step: ts.TimeStep
    ) -> Transitions:
        # Boundaries count in the means with a loss of zero. Dividing by the number of
        # valid transitions would give more weight to batches with many boundaries.
        valid = ~time_step.is_last()
        # The inputs of the losses are masked, too: the gradient of a loss that is not
        # finite would be NaN even where the loss is multiplied by zero.
        reward = self._at_next_steps(next_time_step.reward)
        discount = self._at_next_steps(next_time_step.discount)
        return Transitions(
            time_step,
            action,
            next_time_step,
            masking.masked(self._reward_scale_factor * reward, valid),
            masking.masked(self._gamma * discount, valid),
            valid,
        )

    def _q_values(self, transitions: Transitions) -> tf.Tensor:
        """Returns the first critic's values of the actions taken, for the log."""
        time_step = self._embedding.trained(transitions.time_step, training=False)
        return self._values(self._critic_networks[0], time_step, transitions.action)

    def _values(
        self, critic: Any, time_step: ts.TimeStep, action: Any, training: bool = False
    ) -> tf.Tensor:
        """Returns a critic's values of embedded time steps, `[B]` or `[B, T]`."""
        value, _ = critic(
            (time_step.observation, action),
            step_type=time_step.step_type,
            training=training,
        )
        return value

    def _at_next_steps(self, output: tf.Tensor) -> tf.Tensor:
        """Returns the part of a network's output that belongs to the next steps.

        Recurrent networks are unrolled over all steps, `[B, T, ...]`. The first of
        these is not a next step, so its output is dropped.
        """
        return output[:, 1:] if self._recurrent else output

    def _compute_critic_loss(
        self,
        transitions: Transitions,
        next_values: tf.Tensor,
        weights: tf.Tensor | None,
        training: bool,
    ) -> CriticLoss:
        """Returns the loss of all critics with the same targets.

        Args:
          transitions: The transitions.
          next_values: The values of the next steps, `[B]` or `[B, T - 1]`.
          weights: See `TFAgent.train`.
          training: Whether the critics are applied as in training.
        """
        td_losses, errors = [], []
        time_step = self._embedding.trained(transitions.time_step, training)
        regularization = self._embedding.losses
        for critic in self._critic_networks:
            predictions = self._values(critic, time_step, transitions.action, training)
            # Read now, because the losses may include penalties on the activations.
            regularization += critic.losses
            td_loss, td_error = self._td_error(predictions, transitions, next_values)
            td_losses.append(td_loss)
            errors.append(td_error)
        td_error = masking.masked(losses.largest_error(errors), transitions.valid)
        td_loss = self._masked(tf.add_n(td_losses), transitions.valid)
        aggregated = losses.aggregate_losses(
            td_loss, weights, regularization_loss=regularization
        )
        return CriticLoss(aggregated.total_loss, td_loss, td_error)

    def _td_error(
        self, predictions: tf.Tensor, transitions: Transitions, next_values: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss and the error of each transition for one critic network.

        Args:
          predictions: The output of `_values` for the actions taken.
          transitions: The transitions.
          next_values: The values of the next steps.

        Returns:
          The loss and the error, `[B]` or `[B, T - 1]`, which are masked later.
        """
        targets = losses.td_target(
            transitions.reward, transitions.discount, next_values
        )
        td_error = targets - predictions
        td_loss = self._td_errors_loss_fn(targets, predictions)
        checks.check_element_wise(td_loss, td_error)
        return td_loss, td_error

    def _masked(self, values: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """Returns the values of each example, `[B]`, with 0 for masked transitions.

        For recurrent networks they are summed over time.
        """
        values = masking.masked(values, valid)
        return tf.reduce_sum(values, axis=1) if self._recurrent else values

    def _minimize(
        self,
        compute_loss: Callable[[], tuple[tf.Tensor, Any]],
        networks: Sequence[Any],
        optimizer: optimizers.OptimizerAdapter,
    ) -> tuple[tf.Tensor, Any]:
        """Updates the weights of networks once.

        Args:
          compute_loss: A function that returns the scalar loss, and details.
          networks: The networks whose trainable weights change.
          optimizer: The optimizer of these weights.

        Returns:
          The loss before the update, after the checks that it and its gradients are
          finite; and the details.
        """
        return self._gradient_step(
            compute_loss,
            trainable_variables(networks),
            optimizer,
            [v for n in networks for v in n.non_trainable_variables],
        )

    def _write_summaries(self, loss: tf.Tensor, parts: dict[str, tf.Tensor]) -> None:
        """Writes the losses, and in debug mode histograms of errors and losses."""
        if not self.summaries_enabled:
            return
        scalars = {k: v for k, v in parts.items() if v.shape.rank == 0}
        summaries.summarize_scalar_dict(
            {**scalars, "total_loss": loss}, step=self.train_step_counter
        )
        if self.debug_summaries:
            summaries.summarize_tensor_dict(
                {f"loss/{k}": v for k, v in parts.items() if k not in scalars},
                step=self.train_step_counter,
            )

    def _finish(self, *checked: tf.Tensor) -> None:
        """Counts the update and moves the target networks."""
        self._count(*checked)
        with tf.control_dependencies(checked):
            self._update_target()


def trainable_variables(networks: Sequence[Any]) -> list[Any]:
    """Returns the trainable variables of networks, each once, in order."""
    found = [v for network in networks for v in network.trainable_variables]
    return list({id(variables.as_tf_variable(v)): v for v in found}.values())
