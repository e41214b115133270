"""The base class of off-policy agents with an actor, critics and target networks."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    critics,
    measures,
    options,
    td_losses,
    tf_agent,
    transitions,
    updates,
)
from tfrl.losses import masking
from tfrl.losses.shapes import check_same_shape
from tfrl.networks import utils as network_utils
from tfrl.policies import tf_policy
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import common
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl.agents import actor_critic_networks
    from tfrl.typing import types


class ActorCriticAgent(tf_agent.TFAgent):
    """Base class of off-policy agents with an actor, critics and target networks.

    A subclass gives its networks and policies to this constructor, lists the parts of
    its update in `_parts`, and names the tuple of `LossInfo.extra` in `_info`; see
    `TFAgent`. The losses of the parts, such as its `_critic_loss`, get a `Batch` of
    `Transitions`; `_regress` and `agents.critics` compute them.
    """

    _as_data: transitions.Reader
    # Makes a function that clips gradients to the norm `gradient_clipping`.
    _clip_to = staticmethod(optimizers.each_to_norm)

    # Whether its critics may predict the logits of bins, for an `HlGauss`.
    _takes_bins = False

    # The number of values of the one discrete action, if critics are networks of
    # observations that give the value of each; None if they see the actions.
    _num_actions: int | None = None

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_compute_next_values": "override _critic_loss(batch)",
        "_td_error": (
            "override _critic_loss(batch), which calls _regress with the errors"
        ),
        "_compute_actor_loss": "override _actor_loss(batch)",
        "_compute_entropy": "override _alpha_loss(batch)",
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
        """Stores the networks, and creates the updater of the target networks.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          policy: The policy to deploy and evaluate.
          collect_policy: The policy that explores.
          networks: The networks and their targets.
          td: The options of TD learning, for the critics.
          agent: The options that all agents have.

        Raises:
          ValueError: A critic's output has a form that the agent does not take.
          NotImplementedError: N-step updates with a recurrent network.
        """
        trained = [critic for critic, _ in networks.critics]
        self._recurrent = any(
            tf.nest.flatten(n.state_spec)
            for n in [networks.actor, *trained]
            if n is not None
        )
        checks.check_n_step_update(td.n_step_update, self._recurrent)
        self._td_errors_loss_fn = td.td_errors_loss_fn or common.element_wise_huber_loss
        if isinstance(self._td_errors_loss_fn, losses.HlGauss) and not self._takes_bins:
            raise ValueError(
                "td_errors_loss_fn: got an HlGauss, but the critics of a "
                f"{type(self).__name__} predict numbers; give a loss of numbers, or "
                "use a SacAgent or a Td3Agent."
            )
        for critic in trained:
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
        self._critic_networks = trained
        self._target_critic_networks = [
            target for _, target in networks.critics if target is not None
        ]
        self._embedding = networks.embedding
        self._target_pairs = networks.target_pairs()
        self._clip = self._clip_to(td.gradient_clipping)
        # If they are variables, checkpoints find them here.
        self._gamma = td.gamma
        self._reward_scale_factor = td.reward_scale_factor
        self._update_target = self._get_target_updater(
            td.target_update_tau, td.target_update_period
        )
        seed = seeds.draw_number() if agent.seed is None else agent.seed
        self._seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
        self._as_data = transitions.Reader(self.data_context, td, self._recurrent)

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
        self, loss: updates.PartLoss, optimizer: types.Optimizer | None, **kwargs: Any
    ) -> updates.Part:
        """Returns the part that trains the critics and the observation network."""
        trained = [*self._critic_networks, *self._embedding.networks]
        return self._part("critic", loss, trained, optimizer, **kwargs)

    def _actor_part(
        self, loss: updates.PartLoss, optimizer: types.Optimizer | None, **kwargs: Any
    ) -> updates.Part:
        """Returns the part that trains the actor."""
        return self._part("actor", loss, [self._actor_network], optimizer, **kwargs)

    def _regress(
        self,
        batch: updates.Batch,
        targets: Any,
        errors: Callable[[Any, Any], tuple[tf.Tensor, tf.Tensor]] | None = None,
        values_of: Callable[..., Any] | None = None,
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the loss of all critics with the same targets.

        The observation network is trained, too.

        Args:
          batch: A batch of `Transitions`.
          targets: The targets of the critics' values of the actions.
          errors: A function of the targets and a critic's values that returns the loss
            and the error of each transition, `[B]` or `[B, T - 1]`, which are masked
            here. It is called for each critic, and for each member of an ensemble. None
            takes `critics.td_errors` with the agent's `td_errors_loss_fn`, or an
            `HlGauss`'s `errors`.
          values_of: A function like `critics.values`; `_values` if None.

        Returns:
          The scalar loss; as details `td_loss` of each example, `[B]`, summed over the
          critics and over time, and `td_error`, target minus prediction, `[B]` or `[B,
          T - 1]`, of the critic with the largest error. Both are 0 where masked.
        """
        data: transitions.Transitions = batch.data
        own_loss = self._td_errors_loss_fn
        if errors is None and isinstance(own_loss, losses.HlGauss):
            errors = own_loss.errors
        elif errors is None:
            loss_fn = functools.partial(
                td_losses.per_transition,
                own_loss,
                valid=data.valid,
                agent=type(self).__name__,
            )
            errors = functools.partial(critics.td_errors, loss_fn=loss_fn)
        critic_losses, differences = [], []
        time_step = self._embedding.trained(data.time_step, batch.training)
        regularization = self._embedding.losses
        for critic in self._critic_networks:
            predictions = (values_of or self._values)(
                critic, time_step, data.action, batch.training
            )
            # Read now, because the losses may include penalties on the activations.
            regularization += critic.losses
            for prediction in critics.members_of(predictions, data.valid):
                td_loss, td_error = errors(targets, prediction)
                check_same_shape(transitions=data.valid, loss_of_errors=td_loss)
                critic_losses.append(td_loss)
                differences.append(td_error)
        td_error = masking.masked(losses.largest_error(differences), data.valid)
        td_loss = data.per_example(tf.add_n(critic_losses))
        aggregated = losses.aggregate_losses(
            td_loss, batch.weights, regularization_loss=regularization
        )
        return aggregated.total_loss, {"td_loss": td_loss, "td_error": td_error}

    def _loss_of(
        self,
        label: str,
        loss: updates.PartLoss,
        transition: trajectory.Transition,
        weights: tf.Tensor | None,
        training: bool,
        *factors: float | None,
    ) -> tf.Tensor:
        """Returns the loss of a part before its weight, a scalar.

        The random numbers are those of the next update.

        Args:
          label: The part's label. There may be no such part.
          loss: Its loss.
          transition: The transition, such as `convert` of a `transitions.Reader`
            returns.
          weights: See `TFAgent.train`.
          training: Whether networks are applied as in training.
          *factors: See `transitions.Reader.of`.
        """
        data = self._as_data.of(transition, *factors)
        batch = self._batch_of(data, weights, training)
        by_label = {part.label: own for part, own in self._in_turn(batch)}
        return loss(by_label.get(label, batch))[0]

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns numbers of the critics and the policy, and of `_measure_losses`."""
        extra = self._loss_of_parts(batch).extra
        q_values = self._q_values(batch.data.time_step, batch.data.action)
        return {
            **measures.of_values(q_values, extra.td_error, batch.data.valid),
            **self._actions_now(batch.data),
            **self._measure_losses(batch, extra),
        }

    def _actions_now(self, data: transitions.Transitions) -> dict[str, tf.Tensor]:
        """Returns `measures.of_actions` of the policy; nothing if it has memory."""
        if self._recurrent:
            return {}
        actions = self.policy.action(data.time_step, seed=(0, 0)).action
        counts = tf.cast(data.valid, tf.float32)
        return measures.of_actions(actions, self.action_spec, counts)

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        action = self.policy.action(time_step, seed=(0, 0)).action
        return self._q_values(time_step, action)

    def _measure_losses(self, batch: updates.Batch, extra: Any) -> dict[str, tf.Tensor]:
        """Returns further scalars of a batch for the log.

        Args:
          batch: The batch, with the update's seed.
          extra: The extra of the batch's loss.
        """
        del batch, extra
        return {}

    def _q_values(self, time_step: ts.TimeStep, action: Any) -> tf.Tensor:
        """Returns the first critic's values of actions, for the log."""
        embedded = self._embedding.trained(time_step, training=False)
        return self._values(self._critic_networks[0], embedded, action)

    def _values(
        self,
        critic: Any,
        time_step: ts.TimeStep,
        action: Any,
        training: bool = False,
    ) -> Any:
        """Returns a critic's values of actions; see `critics.values`."""
        if self._num_actions is None:
            return critics.values(critic, time_step, action, training)
        (action,) = tf.nest.flatten(action)
        outputs = critics.outputs(critic, time_step, training)
        return losses.action_value(outputs, action)

    def _check_critic(self, critic: Any) -> None:
        """Raises a ValueError unless the agent takes the critic's output."""
        if self._num_actions is None:
            critics.check_gives_numbers(critic)
        else:
            network_utils.check_single_floating_network_output(
                critic.create_variables(), (self._num_actions,), label=critic.name
            )

    def _get_target_updater(self, tau: Any = 1.0, period: Any = 1) -> Callable[[], Any]:
        """Returns a callable that `_train` calls once in each update."""
        return updates.make_updater(self._target_pairs, tau, period)


class DistributionalCritics(ActorCriticAgent):
    """A mixin for agents whose critics return `DiscreteValuedDistribution`s."""

    def _check_critic(self, critic: Any) -> None:
        checks.check_gives_discrete_values(critic)

    def _q_values(self, time_step: ts.TimeStep, action: Any) -> tf.Tensor:
        return super()._q_values(time_step, action).mean()

    def _regress_distributions(
        self, batch: updates.Batch, next_values: types.Distribution
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the cross entropies of the critics; see `_regress`.

        Args:
          batch: See `_regress`.
          next_values: The `DiscreteValuedDistribution` `[B]` of the values of the next
            steps, not yet projected onto the atoms.
        """
        reward, discount = batch.data.reward, batch.data.discount

        def errors(next_values: Any, predicted: Any) -> tuple[tf.Tensor, tf.Tensor]:
            return (
                losses.categorical(predicted, reward, discount, next_values),
                losses.td_error(predicted.mean(), reward, discount, next_values.mean()),
            )

        return self._regress(batch, next_values, errors)


class LossesOfParts(ActorCriticAgent):
    """A mixin with TF-Agents' methods for the losses of the critics and the actor."""

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "critic_loss": "override _critic_loss(batch)",
        "actor_loss": "override _actor_loss(batch)",
    }

    @abc.abstractmethod
    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the critics' loss, and its details."""

    @abc.abstractmethod
    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the actor's loss, and its details."""

    def critic_loss(
        self,
        time_steps: ts.TimeStep,
        actions: types.NestedTensor,
        next_time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the mean loss of all critics together, a scalar.

        It is the loss before its weight, with the random numbers of the next update.

        Args:
          time_steps: The time steps `[B, ...]` at which the actions were taken; `[B, T
            - 1, ...]` for recurrent networks.
          actions: The nest of actions, of the same outer shape.
          next_time_steps: The time steps after them, of the same outer shape.
          weights: See `TFAgent.train`.
          training: Whether the critics are applied as in training.
        """
        reached = self._normalizers.normalize_rewards(next_time_steps)
        steps = transition(time_steps, actions, reached)
        return self._loss_of("critic", self._critic_loss, steps, weights, training)

    def actor_loss(
        self,
        time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the actor's mean loss before its weight, a scalar.

        Args:
          time_steps: As for `critic_loss`.
          weights: See `TFAgent.train`.
          training: Whether the actor is applied as in training.
        """
        steps = transition(time_steps, (), time_steps)
        return self._loss_of("actor", self._actor_loss, steps, weights, training)


def transition(
    time_steps: ts.TimeStep, actions: types.NestedTensor, reached: ts.TimeStep
) -> trajectory.Transition:
    """Returns the `Transition` of actions that are not those of a policy's step."""
    return trajectory.Transition(time_steps, policy_step.PolicyStep(actions), reached)
