"""Maximum a posteriori policy optimisation (MPO).

For a transition (s, a, r, s'), N actions a_i are drawn from the target policy at s'.
The critic Q minimises L(y - Q(s, a)) with the target

    y = r + gamma * d * mean_i Q_target(s', a_i)

where d is the environment's discount: 0 at a termination, 1 at a time limit. The policy
is fitted to the actions, weighted by softmax_i(Q_target(s', a_i) / T), within limits of
the KL divergence from the target policy:

    -sum_i w_i log pi(a_i|s') + alpha KL(pi_target(.|s') || pi(.|s'))

where the mean and the standard deviation of pi have separate KL penalties. The
temperature T and the factors alpha are dual variables with their own losses.
Abdolmaleki et al., "Maximum a posteriori policy optimisation" (2018, arXiv:1806.06920),
and "Relative entropy regularized policy iteration" (2018, arXiv:1812.02256); the
penalty of actions outside of their bounds comes from Abdolmaleki et al., "A
distributional view on multi-objective policy optimization" (2020, arXiv:2005.07513).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    options,
    transitions,
    updates,
)
from tfrl.agents.mpo import normalized_actions
from tfrl.policies import greedy_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.optimization import optimizers
from tfrl.utils.random_numbers import seeds


class MpoLossInfo(NamedTuple):
    """The parts of the loss, whose sum is the loss, and errors per example.

    Attributes:
      actor_loss: The policy's loss with its KL penalties, a scalar.
      critic_loss: The critic's loss, a scalar.
      dual_loss: The loss of the temperatures and of the factors of the KL penalties, a
        scalar.
      td_loss: The critic's loss of each example before weighting, `[B]`, 0 where
        masked.
      td_error: Target minus prediction, `[B]`; 0 where masked.
    """

    actor_loss: tf.Tensor
    critic_loss: tf.Tensor
    dual_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class Evaluation(NamedTuple):
    """Actions for the next steps, drawn from the target policy, and their values.

    Attributes:
      time_step: The next steps, with the embeddings of the target network.
      policy: The target policy's `Normal` `[B, D]`, in units of the actions' bounds.
      actions: The actions in these units, `[N, B, D]`, not clipped.
      outputs: The target critic's outputs for the clipped actions, `[N * B]`.
    """

    time_step: ts.TimeStep
    policy: Any
    actions: tf.Tensor
    outputs: Any


class MpoSettings(options.Settings, total=False):
    """The optional arguments of `MpoAgent` as keyword arguments."""

    observation_network: types.Network | types.Layer | None
    policy_loss_module: losses.MPO | None
    num_samples: int
    target_policy_network: types.Network | types.Layer | None
    target_critic_network: types.Network | types.Layer | None


class MpoAgent(actor_critic.ActorCriticAgent):
    """An MPO agent.

    `train` updates the critic, the policy and the dual variables. Each loss depends
    only on the target networks and on the variables that it trains, so the order of the
    updates does not matter.

    `collect_policy` draws actions from the online policy and clips them to their
    bounds; `policy` takes its mean. The critic sees clipped actions, too, as the
    environment does; the policy is fitted to the actions before the clipping.
    """

    _info = MpoLossInfo
    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_next_values": "override _critic_loss(batch)",
        "_action_values": "override _critic_loss(batch) and _actor_loss(batch)",
    }
    # All gradients of a network together.
    _clip_to = staticmethod(optimizers.all_to_norm)
    _algorithm = "MPO"

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        policy_optimizer: types.Optimizer | None = None,
        critic_optimizer: types.Optimizer | None = None,
        dual_optimizer: types.Optimizer | None = None,
        *,
        observation_network: types.Network | types.Layer | None = None,
        policy_loss_module: losses.MPO | None = None,
        num_samples: int = 20,
        target_policy_network: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        **settings: Unpack[options.Settings],
    ) -> None:
        """Builds the target networks and the policies. The defaults are Acme's.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs.
          policy_network: A `Network` (or Keras layer) that maps observations to normal
            distributions of actions, such as a `Sequential` of a `LayerNormMLP` and a
            `MultivariateNormalDiagHead`, or an `ActorDistributionNetwork`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`.
          policy_optimizer: The optimizer of the policy; None for an agent that never
            trains. Acme takes Adam with a rate of 1e-4.
          critic_optimizer: The optimizer of the critic and of the observation network;
            None as for the policy. Acme takes Adam with a rate of 1e-4.
          dual_optimizer: The optimizer of the dual variables; None as for the policy.
            Acme takes Adam with a rate of 1e-2.
          observation_network: A `Network` (or Keras layer) without state, such as a
            network for images. The policy and the critic get its output instead of the
            observations. The critic's loss trains it; the policy is trained, and acts,
            with the output of its target. None for no such network.
          policy_loss_module: The policy's loss, and its dual variables; None takes
            Acme's settings.
          num_samples: The number `N` of actions that are drawn for each example.
          target_policy_network: The target of the policy; a new copy if None.
          target_critic_network: The target of the critic; a new copy if None.
          **settings: See `TdOptions` and `AgentOptions`. The defaults are
            `target_update_period=100`, `gamma=0.99`, `n_step_update=5`, half the
            squared error, and `gradient_clipping=40.0`, the largest norm of all
            gradients of the policy, and of all gradients of the critic and the
            observation network. The gradients of the dual variables are not clipped.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          TypeError: The policy's distributions are not normal, or `policy_loss_module`
            is not an `MPO`.
          NotImplementedError: A network is recurrent.
        """
        defaults: dict[str, Any] = {
            "target_update_period": 100,
            "td_errors_loss_fn": losses.half_squared_difference,
            "gamma": 0.99,
            "n_step_update": 5,
            "gradient_clipping": 40.0,
        }
        td, common = options.from_settings(type(self), settings, **defaults)
        time_step_spec = checks.as_time_step_spec(time_step_spec, self._algorithm)
        action_spec = checks.as_continuous_action_spec(
            action_spec, self._algorithm, of_one_value=False
        )
        number_checks.check_integer("num_samples", num_samples, 1, remedy="20 is usual")
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            policy_network,
            [critic_network, target_critic_network],
            target_actor_network=target_policy_network,
            observation_network=observation_network,
            normalizer=common.observation_normalizer,
        )
        _check_policy_network(networks.actor, self._algorithm)
        checks.check_not_recurrent(
            [networks.actor, networks.critics[0][0]], self._algorithm
        )
        sampling_policy = networks.policy(time_step_spec, action_spec, seed=common.seed)
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(sampling_policy),
            sampling_policy,
            networks,
            td,
            common,
        )
        self._num_samples = num_samples
        self._units = normalized_actions.NormalizedActions(action_spec)
        self._policy_loss = _checked_loss(policy_loss_module)
        self._policy_loss.create_variables(self._units.num_dimensions)
        dual = updates.Part(
            "dual",
            self._dual_loss,
            [self._policy_loss],
            dual_optimizer,
            after=self._policy_loss.project,
        )
        self._parts = [
            self._critic_part(self._critic_loss, critic_optimizer),
            self._actor_part(self._actor_loss, policy_optimizer),
            dual,
        ]

    @property
    def policy_loss_module(self) -> losses.MPO:
        """The policy's loss, which owns the dual variables."""
        return self._policy_loss

    def _measure_losses(self, batch: updates.Batch, extra: Any) -> dict[str, tf.Tensor]:
        """Returns the scalars of `losses.MPO.statistics` for a batch."""
        del extra
        _, terms = self._policy_losses(batch)
        return self._policy_loss.statistics(terms)

    def _batch_of(self, *args: Any, **kwargs: Any) -> updates.Batch:
        """Returns the batch, with the `Evaluation` that all losses share."""
        batch = super()._batch_of(*args, **kwargs)
        (seed,) = seeds.split_seed(batch.seed, 1)
        evaluation = self._evaluate(batch.data, seed)
        return batch._replace(details={"evaluation": evaluation})

    def _evaluate(self, data: transitions.Transitions, seed: tf.Tensor) -> Evaluation:
        """Draws actions at the next steps, and evaluates them.

        Each step is embedded once, and the critic sees all `N * B` actions together.
        """
        reached = self._embedding.target(data.next_time_step)
        policy = self._units.normal(
            critics.outputs(self._target_actor_network, reached)
        )
        shape = [self._num_samples, *_shape_of(policy.loc)]
        drawn = policy.loc + policy.scale * seeds.normal(seed, shape, batch_axis=1)
        repeated = reached._replace(
            step_type=self._repeated(reached.step_type),
            observation=tf.nest.map_structure(self._repeated, reached.observation),
        )
        outputs = critics.values(
            self._target_critic_networks[0],
            repeated,
            self._units.clipped_actions(
                tf.reshape(drawn, [-1, self._units.num_dimensions])
            ),
        )
        return Evaluation(reached, policy, drawn, outputs)

    def _repeated(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns `N` copies of `[B, ...]`, one after the other."""
        return tf.tile(tensor, [self._num_samples] + [1] * (tensor.shape.rank - 1))

    def _by_action(self, tensor: tf.Tensor) -> tf.Tensor:
        """Reshapes `[N * B, ...]` to `[N, B, ...]`."""
        return tf.reshape(tensor, [self._num_samples, -1, *tensor.shape[1:]])

    def _means(self, evaluation: Evaluation) -> tf.Tensor:
        """Returns `Q_target(s', a_i)`, `[N, B]`."""
        return self._by_action(evaluation.outputs)

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `L(y - Q(s, a))`, and its details.

        Here `y = r + gamma d mean_i Q_target(s', a_i)`.
        """
        next_values = tf.reduce_mean(self._means(batch.details["evaluation"]), axis=0)
        return self._regress(batch, batch.data.targets(next_values))

    def _policy_losses(self, batch: updates.Batch) -> tuple[tf.Tensor, losses.MPOTerms]:
        """Returns the policy's loss `[B]`, and the terms of the dual loss."""
        evaluation = batch.details["evaluation"]
        distributions = critics.outputs(
            self._actor_network, evaluation.time_step, batch.training
        )
        return self._policy_loss.policy_loss(
            self._units.normal(distributions),
            evaluation.policy,
            evaluation.actions,
            self._means(evaluation),
        )

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `-sum_i w_i log pi(a_i|s') + alpha KL`."""
        loss, terms = self._policy_losses(batch)
        return critics.mean(loss, batch, self._actor_network), {"terms": terms}

    def _dual_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the loss of the temperatures and of the factors of the penalties."""
        loss = self._policy_loss.dual_loss(batch.details["terms"])
        return critics.mean(loss, batch), {}


def _shape_of(tensor: tf.Tensor) -> list[Any]:
    """Returns the shape `[B, D]` of a tensor, with static numbers if they are known."""
    dynamic = tf.shape(tensor)
    return [dynamic[i] if n is None else n for i, n in enumerate(tensor.shape)]


def _check_policy_network(network: Any, algorithm: str) -> None:
    import tensorflow_probability as tfp

    checks.check_gives_distributions(
        network, algorithm, ", or end it with a MultivariateNormalDiagHead"
    )
    kinds = (
        tfp.distributions.Normal,
        tfp.distributions.MultivariateNormalDiag,
        tfp.distributions.Independent,
    )
    for output in tf.nest.flatten(network.create_variables()):
        kind = output.parameters.type_
        if not issubclass(kind, kinds):
            raise TypeError(
                f"policy_network {network.name!r}: {algorithm} expects normal "
                "distributions, whose KL divergences it limits for the mean and the "
                f"standard deviation apart, got {kind.__name__}; use a projection "
                "without squashing, such as a NormalProjectionNetwork, or a "
                "MultivariateNormalDiagHead."
            )


def _checked_loss(module: losses.MPO | None) -> losses.MPO:
    if module is None:
        return losses.MPO(
            epsilon=0.1,
            epsilon_mean=1e-3,
            epsilon_stddev=1e-6,
            init_log_temperature=1.0,
            init_log_alpha_mean=1.0,
            init_log_alpha_stddev=10.0,
            epsilon_penalty=1e-3,
        )
    if not isinstance(module, losses.MPO):
        raise TypeError(
            f"policy_loss_module: got {type(module).__name__}, expected a losses.MPO, "
            "since the critic has values for one objective; or None for the default."
        )
    return module
