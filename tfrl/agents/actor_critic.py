"""What off-policy agents with an actor, critics and target networks share.

Critics are networks of pairs of observations and actions. Every loss is a mean over the
`B` examples in which masked transitions (boundaries, and steps before a cut) count as
0, so that they change no weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    data_converter,
    options,
    sequences,
    tf_agent,
    updates,
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
    from tfrl.agents import actor_critic_networks
    from tfrl.typing import types


def distributional_td_error(
    predictions: Any, transitions: updates.Transitions, next_values: Any
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


def seeds_of(nest: Any, seed: tf.Tensor) -> list[tf.Tensor]:
    """Returns a seed for each leaf of a nest; the seed itself for a single leaf."""
    number = len(tf.nest.flatten(nest))
    return [seed] if number == 1 else seeds.split_seed(seed, number)


class ActorCriticAgent(tf_agent.TFAgent):
    """Base class of off-policy agents with an actor, critics and target networks.

    A subclass gives its networks and policies to this constructor, lists the parts of
    its update in `_parts`, and names the tuple of `LossInfo.extra` in `_info`. An
    update takes the parts in their order, counts the train step, and then moves the
    target networks. `train` returns the losses as they were before each part's update;
    `loss` returns all losses of the current weights.

    The fields of `_info` are `<label>_loss`, for the losses of the parts, and names of
    details that the losses return. A part that the agent does not have counts as 0.

    `_critic_part` and `_actor_part` make the two parts that most agents have. Their
    losses are means of `_td_error`, with the values that `_compute_next_values`
    returns, and of `_compute_actor_loss`.
    """

    # Makes a function that clips gradients of `gradient_clipping`.
    _clip_to = staticmethod(optimizers.each_to_norm)
    # The named tuple of `LossInfo.extra`.
    _info: Any
    # The parts of an update, in order.
    _parts: Sequence[updates.Part] = ()
    # Modules with variables that belong to the agent's state, but that no part trains.
    _untrained: Sequence[tf.Module] = ()

    _hook_arguments: ClassVar[Mapping[str, Sequence[str]]] = {
        "_compute_next_values": ("next_time_step", "seed"),
        "_compute_actor_loss": ("time_step", "seed", "training"),
    }

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy: tf_policy.TFPolicy,
        collect_policy: tf_policy.TFPolicy,
        networks: actor_critic_networks.Networks,
        td: options.TdOptions,
        agent: options.AgentOptions,
    ) -> None:
        """Keeps the networks, and makes what moves the targets.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          policy: The policy to deploy and evaluate.
          collect_policy: The policy that explores.
          networks: The networks and their targets.
          td: How the critics learn.
          agent: What any agent can be given.

        Raises:
          ValueError: A critic's output is not what the agent takes.
          NotImplementedError: N-step updates with a recurrent network.
        """
        critics = [critic for critic, _ in networks.critics]
        self._recurrent = any(
            tf.nest.flatten(n.state_spec) for n in [networks.actor, *critics]
        )
        checks.check_n_step_update(td.n_step_update, self._recurrent)
        for critic in critics:
            self._check_critic(critic)
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            train_sequence_length=None if self._recurrent else td.n_step_update + 1,
            **agent.of_base(),
        )
        self._actor_network = networks.actor
        self._target_actor_network = networks.target_actor
        self._critic_networks = critics
        self._target_critic_networks = [target for _, target in networks.critics]
        self._embedding = networks.embedding
        self._target_pairs = networks.target_pairs()
        self._clip = self._clip_to(td.gradient_clipping)
        self._td_errors_loss_fn = td.td_errors_loss_fn or common.element_wise_huber_loss
        self._gamma = td.gamma
        self._reward_scale_factor = td.reward_scale_factor
        self._update_target = self._get_target_updater(
            td.target_update_tau, td.target_update_period
        )
        seed = seeds.draw_number() if agent.seed is None else agent.seed
        self._seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
        self._as_transition = (
            data_converter.AsTransition(self.data_context, squeeze_time_dim=False)
            if self._recurrent
            else data_converter.AsNStepTransition(
                self.data_context, gamma=td.gamma, n=td.n_step_update
            )
        )

    # Parts.

    def _part(
        self,
        label: str,
        loss: updates.PartLoss,
        trained: Sequence[Any],
        optimizer: types.Optimizer | None,
        **kwargs: Any,
    ) -> updates.Part:
        """Returns a part whose gradients are clipped; see `updates.Part`."""
        return updates.Part(label, loss, trained, optimizer, clip=self._clip, **kwargs)

    def _critic_part(
        self,
        optimizer: types.Optimizer | None,
        loss: updates.PartLoss | None = None,
        **kwargs: Any,
    ) -> updates.Part:
        """Returns the part that trains the critics and the observation network."""
        trained = [*self._critic_networks, *self._embedding.networks]
        return self._part(
            "critic", loss or self._critic_loss, trained, optimizer, **kwargs
        )

    def _actor_part(
        self,
        optimizer: types.Optimizer | None,
        loss: updates.PartLoss | None = None,
        **kwargs: Any,
    ) -> updates.Part:
        """Returns the part that trains the actor."""
        trained = [self._actor_network]
        return self._part(
            "actor", loss or self._actor_loss, trained, optimizer, **kwargs
        )

    def _compute_next_values(self, next_time_step: ts.TimeStep, seed: tf.Tensor) -> Any:
        """Returns the targets' values of the next steps, `[B]` or `[B, T]`.

        Args:
          next_time_step: The next steps, embedded by the target network; see
            `ObservationEmbedding`.
          seed: The seed of random numbers, int64 `[2]`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: write _compute_next_values, which the critics' "
            "loss asks for, or give _critic_part another loss."
        )

    def _compute_actor_loss(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns the actor's loss of each example, `[B]` or `[B, T - 1]`.

        The losses of masked examples, which are removed later, may be any numbers. The
        actor's regularisation losses are added later, too.

        Args:
          time_step: The steps, embedded by the target network; see
            `ObservationEmbedding`.
          seed: The seed of random numbers, int64 `[2]`.
          training: Whether the actor is applied as in training.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: write _compute_actor_loss, which the actor's loss "
            "asks for, or give _actor_part another loss."
        )

    # The update.

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        seed: int | tf.Tensor | None = None,
    ) -> tf_agent.LossInfo:
        batch = self._batch(self._transitions(experience), weights, True, seed)
        part_losses, details = self._in_turn(
            batch,
            lambda part, batch: part.update(
                batch, self._gradient_step, self.train_step_counter
            ),
        )
        checked = list(part_losses.values())
        self._count(*checked)
        with tf.control_dependencies(checked):
            self._update_target()
        return self._loss_info(part_losses, details)

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
        seed: int | tf.Tensor | None = None,
    ) -> tf_agent.LossInfo:
        """Returns the sum of the parts' losses, all of the current weights.

        Args:
          experience: See `TFAgent.train`.
          weights: See `TFAgent.train`.
          training: See `TFAgent.loss`.
          seed: The seed of random numbers; None takes the next update's.
        """
        batch = self._batch(self._transitions(experience), weights, training, seed)
        return self._loss_info(
            *self._in_turn(batch, lambda part, batch: part.weighted_loss(batch))
        )

    def _batch(
        self,
        transitions: updates.Transitions,
        weights: tf.Tensor | None,
        training: bool,
        seed: int | tf.Tensor | None = None,
    ) -> updates.Batch:
        """Returns what the losses are computed from, with the update's seed.

        The seed depends on the agent's seed and the train step counter alone.
        """
        if seed is None:
            counter = tf.cast(self.train_step_counter, tf.int64)
            seed = tf.stack([self._seed, counter])
        batch = updates.Batch(transitions, weights, seeds.as_seed(seed), training, {})
        return batch._replace(shared=self._share(batch))

    def _share(self, batch: updates.Batch) -> Any:
        """Returns what all parts of the update share; nothing by default."""
        del batch

    def _with_seeds(
        self, batch: updates.Batch
    ) -> list[tuple[updates.Part, updates.Batch]]:
        """Returns the parts, each with a seed of its own in its batch."""
        each = seeds.split_seed(batch.seed, len(self._parts))
        return [
            (part, batch._replace(seed=seed))
            for part, seed in zip(self._parts, each, strict=True)
        ]

    def _batch_of(
        self,
        label: str,
        transitions: updates.Transitions,
        weights: tf.Tensor | None,
        training: bool,
    ) -> updates.Batch:
        """Returns the batch of one part; that of all if there is no such part."""
        batch = self._batch(transitions, weights, training)
        each = {part.label: own for part, own in self._with_seeds(batch)}
        return each.get(label, batch)

    def _in_turn(
        self,
        batch: updates.Batch,
        compute: Callable[[updates.Part, updates.Batch], tuple[tf.Tensor, dict]],
    ) -> tuple[dict[str, tf.Tensor], dict[str, Any]]:
        """Returns the loss of each part, by label, and the details of all."""
        part_losses: dict[str, tf.Tensor] = {}
        details: dict[str, Any] = {}
        for part, own in self._with_seeds(batch):
            part_losses[part.label], new = compute(part, own._replace(details=details))
            details = {**details, **new}
        return part_losses, details

    def _loss_info(
        self, part_losses: dict[str, tf.Tensor], details: dict[str, Any]
    ) -> tf_agent.LossInfo:
        """Adds up the losses, and writes the summaries."""
        fields = self._info._fields
        found: dict[str, Any] = {
            name: tf.constant(0.0) for name in fields if name.endswith("_loss")
        }
        found |= {f"{label}_loss": loss for label, loss in part_losses.items()}
        found |= details
        info = self._info(*(found[name] for name in fields))
        loss = updates.total_loss(self._parts, part_losses, fields)
        self._write_summaries(loss, {**info._asdict(), **self._log_values()})
        return tf_agent.LossInfo(loss, info)

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rates, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          Scalars: `learning_rate` of the critics, `<label>_learning_rate` of the other
          parts, and further numbers of the algorithm; of a batch also `q_value`, the
          mean of the first critic's values, and `td_error`, the mean size of the TD
          errors, over the transitions that are not masked.
        """
        values = {}
        for part in self._parts:
            prefix = "" if part.label == "critic" else f"{part.label}_"
            rate = part.optimizer.learning_rate()
            if rate is not None:
                values[f"{prefix}learning_rate"] = rate
        if experience is None:
            return values | self._log_values()
        with tf.summary.record_if(False):
            extra = self.loss(experience).extra
        batch = self._batch(self._transitions(experience), None, training=False)
        valid = batch.transitions.valid
        q_values = self._q_values(batch.transitions)
        values["q_value"] = losses.masked_mean(q_values, valid)
        values["td_error"] = losses.masked_mean(tf.abs(extra.td_error), valid)
        return values | self._log_values(batch, extra)

    def _log_values(
        self, batch: updates.Batch | None = None, extra: Any = None
    ) -> dict[str, tf.Tensor]:
        """Returns scalars of the algorithm for the log, such as a temperature.

        Args:
          batch: A batch, with the update's seed, for numbers of it, or None.
          extra: The extra of the batch's loss, or None.
        """
        del batch, extra
        return {}

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
        return updates.make_updater(self._target_pairs, tau, period)

    def _initialize(self) -> None:
        updates.copy_weights(self._target_pairs)

    def _variables(self) -> list[tf.Variable]:
        return variables.as_tf_variables(
            [
                *(v for part in self._parts for v in part.held()),
                *(v for module in self._untrained for v in module.variables),
                *(v for _, target in self._target_pairs for v in target.variables),
                *getattr(self._update_target, "variables", tuple)(),
                self._seed,
            ]
        )

    # The losses.

    def _transitions(self, experience: Any) -> updates.Transitions:
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
        self,
        time_step: ts.TimeStep,
        action: Any,
        next_time_step: ts.TimeStep,
        gamma: float | None = None,
        reward_scale_factor: float | None = None,
    ) -> updates.Transitions:
        """Masks the rewards and discounts; None takes the agent's number."""
        gamma = self._gamma if gamma is None else gamma
        if reward_scale_factor is None:
            reward_scale_factor = self._reward_scale_factor
        # Boundaries count in the means with a loss of zero. Dividing by the number of
        # valid transitions would give more weight to batches with many boundaries.
        valid = ~time_step.is_last()
        # The inputs of the losses are masked, too: the gradient of a loss that is not
        # finite would be NaN even where the loss is multiplied by zero.
        reward = self._at_next_steps(next_time_step.reward)
        discount = self._at_next_steps(next_time_step.discount)
        return updates.Transitions(
            time_step,
            action,
            next_time_step,
            masking.masked(reward_scale_factor * reward, valid),
            masking.masked(gamma * discount, valid),
            valid,
        )

    def _q_values(self, transitions: updates.Transitions) -> tf.Tensor:
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

    def _outputs(
        self, network: Any, time_step: ts.TimeStep, training: bool = False
    ) -> Any:
        """Returns a network's outputs for embedded time steps, `[B]` or `[B, T]`."""
        output, _ = network(
            time_step.observation, step_type=time_step.step_type, training=training
        )
        return output

    def _at_next_steps(self, output: tf.Tensor) -> tf.Tensor:
        """Returns the part of a network's output that belongs to the next steps.

        Recurrent networks are unrolled over all steps, `[B, T, ...]`. The first of
        these is not a next step, so its output is dropped.
        """
        return output[:, 1:] if self._recurrent else output

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the critics' loss with the values of `_compute_next_values`."""
        reached = self._embedding.target(batch.transitions.next_time_step)
        next_values = self._compute_next_values(reached, batch.seed)
        return self._compute_critic_loss(batch, self._at_next_steps(next_values))

    def _compute_critic_loss(
        self, batch: updates.Batch, next_values: Any
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the loss of all critics with the same targets.

        Args:
          batch: The batch.
          next_values: The values of the next steps, `[B]` or `[B, T - 1]`.

        Returns:
          The scalar loss; as details `td_loss` of each example, `[B]`, summed over the
          critics and over time, and `td_error`, target minus prediction, `[B]` or
          `[B, T - 1]`, of the critic that is farther off. Both are 0 where masked.
        """
        transitions, training = batch.transitions, batch.training
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
            td_loss, batch.weights, regularization_loss=regularization
        )
        return aggregated.total_loss, {"td_loss": td_loss, "td_error": td_error}

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `_compute_actor_loss`."""
        time_step = self._embedding.target(batch.transitions.time_step)
        loss = self._compute_actor_loss(time_step, batch.seed, batch.training)
        return self._mean(loss, batch, self._actor_network), {}

    def _mean(
        self, loss: tf.Tensor, batch: updates.Batch, network: Any = None
    ) -> tf.Tensor:
        """Returns the mean of the examples' losses, with 0 for masked transitions.

        Args:
          loss: The losses, `[B]` or `[B, T - 1]`.
          batch: The batch.
          network: A network whose regularisation losses are added, or None.
        """
        return losses.aggregate_losses(
            self._masked(loss, batch.transitions.valid),
            batch.weights,
            regularization_loss=None if network is None else network.losses,
        ).total_loss

    def _td_error(
        self,
        predictions: tf.Tensor,
        transitions: updates.Transitions,
        next_values: tf.Tensor,
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


class DistributionalCritics(ActorCriticAgent):
    """Critics whose values are `DiscreteValuedDistribution`s; a mixin of agents."""

    def _check_critic(self, critic: Any) -> None:
        checks.check_gives_discrete_values(critic)

    def _q_values(self, transitions: updates.Transitions) -> tf.Tensor:
        return super()._q_values(transitions).mean()

    _td_error = staticmethod(distributional_td_error)
