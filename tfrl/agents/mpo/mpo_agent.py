"""Maximum a posteriori policy optimisation (MPO).

For a transition (s, a, r, s'), N actions a_i are drawn from the target policy at s'.
The critic Q minimises L(y - Q(s, a)) with the target

    y = r + gamma * d * mean_i Q_target(s', a_i)

where d is the environment's discount: 0 at a termination, 1 at a time limit. The policy
is fitted to the actions, weighted by softmax_i(Q_target(s', a_i) / T), within limits of
the KL divergence from the target policy:

    -sum_i w_i log pi(a_i|s') + alpha KL(pi_target(.|s') || pi(.|s'))

for the mean and the standard deviation of pi apart. The temperature T and the factors
alpha are dual variables with losses of their own. Abdolmaleki et al., "Maximum a
posteriori policy optimisation" (2018, arXiv:1806.06920), and "Relative entropy
regularized policy iteration" (2018, arXiv:1812.02256); the penalty of actions outside
of their bounds is that of Abdolmaleki et al., "A distributional view on multi-objective
policy optimization" (2020, arXiv:2005.07513).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import actor_critic, actor_critic_networks, checks, tf_agent
from tfrl.agents.mpo import unit_actions
from tfrl.agents.sac import construction
from tfrl.policies import greedy_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks, optimizers, seeds, variables

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class MpoLossInfo(NamedTuple):
    """The parts of the loss, whose sum it is, and errors per example.

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
    """Actions at the next steps, drawn from the target policy, and their values.

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


class MpoAgent(actor_critic.ActorCriticAgent):
    """An MPO agent.

    `train` updates the critic, the policy and the dual variables. All three losses
    depend on the target networks and on what they train, so their order does not count.

    `collect_policy` draws actions from the online policy and clips them to their
    bounds; `policy` takes its mean. The critic sees clipped actions, too, as the
    environment does; the policy is fitted to the actions before the clipping.
    """

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
        target_update_tau: float = 1.0,
        target_update_period: int = 100,
        td_errors_loss_fn: types.LossFn = tf.math.squared_difference,
        gamma: float = 0.99,
        reward_scale_factor: float = 1.0,
        n_step_update: int = 5,
        gradient_clipping: float | None = 40.0,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the target networks and the policies. The defaults are Acme's.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded floating specs.
          policy_network: A `Network` (or Keras layer) that maps observations to normal
            distributions of actions, such as a `Sequential` of a `LayerNormMLP` and a
            `MultivariateNormalDiagHead`, or an `ActorDistributionNetwork`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`.
          policy_optimizer: The optimizer of the policy; None for an agent that never
            trains. Acme takes Adam with a rate of 1e-4.
          critic_optimizer: The optimizer of the critic and of the observation network;
            None as for the policy. Acme takes the same.
          dual_optimizer: The optimizer of the dual variables; None as for the policy.
            Acme takes Adam with a rate of 1e-2.
          observation_network: A `Network` (or Keras layer) without state that maps
            observations to what the policy and the critic take for observations, such
            as a network of images. The critic's loss trains it; the policy is trained,
            and acts, with the output of its target. None for no such network.
          policy_loss_module: The policy's loss, and its dual variables; None takes
            Acme's settings.
          num_samples: The number `N` of actions that are drawn for each example.
          target_policy_network: The target of the policy; a new copy if None.
          target_critic_network: The target of the critic; a new copy if None.
          target_update_tau: The step size of the targets' soft update; 1 copies the
            weights.
          target_update_period: The number of train steps between updates of the
            targets.
          td_errors_loss_fn: A loss of (targets, predictions), element by element.
          gamma: The discount factor.
          reward_scale_factor: The factor by which the rewards are multiplied.
          n_step_update: The number `n` of steps in the return; `train` then takes
            experience with `T = n + 1`.
          gradient_clipping: The largest norm of all gradients of the policy, and of
            those of the critic and the observation network; None does not clip. Those
            of the dual variables are not clipped.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          seed: Seed of the actions in the losses, and of the policies' own random
            numbers.
          observation_normalizer: Normalizes the observations that the networks see, in
            the policies and the losses; such as a `StreamingTensorNormalizer` of the
            observation spec. Loops update it; see `update_normalizers`.
          reward_normalizer: Normalizes the rewards that the losses see, before
            `reward_scale_factor`; such as a `RewardNormalizer`.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          TypeError: The policy's distributions are not normal, or `policy_loss_module`
            is not an `MPO`.
          NotImplementedError: A network is recurrent.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, self._algorithm)
        action_spec = construction.check_action_spec(action_spec, self._algorithm)
        number_checks.check_integer("num_samples", num_samples, 1, remedy="20 is usual")
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            policy_network,
            critic_network,
            target_policy_network,
            target_critic_network,
            observation_network,
            observation_normalizer,
        )
        policy, critic = networks.actor[0], networks.critic[0]
        _check_policy_network(policy, self._algorithm)
        checks.check_not_recurrent([policy, critic], self._algorithm)
        sampling_policy = networks.policy(time_step_spec, action_spec, seed=seed)
        super().__init__(
            time_step_spec,
            action_spec,
            policy=greedy_policy.GreedyPolicy(sampling_policy),
            collect_policy=sampling_policy,
            actor_network=policy,
            critic_networks=[critic],
            target_pairs=[networks.actor, networks.critic],
            embedding=networks.embedding,
            actor_optimizer=policy_optimizer,
            critic_optimizer=critic_optimizer,
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            n_step_update=n_step_update,
            gradient_clipping=gradient_clipping,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._target_policy_network = networks.actor[1]
        self._target_critic_network = networks.critic[1]
        self._num_samples = num_samples
        self._units = unit_actions.UnitActions(action_spec)
        self._policy_loss = _checked_loss(policy_loss_module)
        self._policy_loss.create_variables(self._units.num_dimensions)
        self._dual_optimizer = optimizers.OptimizerAdapter(
            dual_optimizer, self._policy_loss.trainable_variables
        )

    @property
    def policy_loss_module(self) -> losses.MPO:
        """The policy's loss, which owns the dual variables."""
        return self._policy_loss

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns learning rates, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          The scalars of `ActorCriticAgent.diagnose`, `dual_learning_rate`, and of a
          batch those of `losses.MPO.statistics`.
        """
        values = super().diagnose(experience)
        rate = self._dual_optimizer.learning_rate()
        values |= {} if rate is None else {"dual_learning_rate": rate}
        if experience is not None:
            evaluation = self._evaluate(self._transitions(experience))
            _, terms = self._policy_losses(evaluation, training=False)
            values |= self._policy_loss.statistics(terms)
        return values

    def _variables(self) -> list[tf.Variable]:
        return [
            *super()._variables(),
            *self._policy_loss.trainable_variables,
            *variables.as_tf_variables(self._dual_optimizer.variables()),
        ]

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)
        evaluation = self._evaluate(transitions)

        def critic_part() -> tuple[tf.Tensor, actor_critic.CriticLoss]:
            critic = self._critic_loss(transitions, evaluation, weights, training=True)
            return critic.loss, critic

        def policy_part() -> tuple[tf.Tensor, losses.MPOTerms]:
            loss, terms = self._policy_losses(evaluation, training=True)
            return self._policy_mean(loss, transitions, weights), terms

        critic_loss, critic = self._minimize(
            critic_part, self._critic_parts, self._critic_optimizer
        )
        policy_loss, terms = self._minimize(
            policy_part, [self._actor_network], self._actor_optimizer
        )
        dual_loss, _ = self._gradient_step(
            lambda: (self._dual_mean(terms, transitions, weights), ()),
            self._policy_loss.trainable_variables,
            self._dual_optimizer,
        )
        with tf.control_dependencies([dual_loss]):
            self._policy_loss.project()
        self._finish(critic_loss, policy_loss, dual_loss)
        return self._loss_info(
            policy_loss, dual_loss, critic._replace(loss=critic_loss)
        )

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        transitions = self._transitions(experience)
        evaluation = self._evaluate(transitions)
        critic = self._critic_loss(transitions, evaluation, weights, training)
        policy_loss, terms = self._policy_losses(evaluation, training)
        return self._loss_info(
            self._policy_mean(policy_loss, transitions, weights),
            self._dual_mean(terms, transitions, weights),
            critic,
        )

    def _loss_info(
        self,
        actor_loss: tf.Tensor,
        dual_loss: tf.Tensor,
        critic: actor_critic.CriticLoss,
    ) -> tf_agent.LossInfo:
        info = MpoLossInfo(
            actor_loss, critic.loss, dual_loss, critic.td_loss, critic.td_error
        )
        loss = actor_loss + critic.loss + dual_loss
        self._write_summaries(loss, info._asdict())
        return tf_agent.LossInfo(loss, info)

    def _evaluate(self, transitions: actor_critic.Transitions) -> Evaluation:
        """Draws actions at the next steps, and evaluates them.

        Each step is embedded once, and the critic sees all `N * B` actions together.
        """
        reached = self._embedding.target(transitions.next_time_step)
        distributions, _ = self._target_policy_network(
            reached.observation, step_type=reached.step_type
        )
        policy = self._units.normal(distributions)
        (seed,) = self._next_seeds(1)
        shape = [self._num_samples, *_shape_of(policy.loc)]
        drawn = policy.loc + policy.scale * seeds.normal(seed, shape)
        repeated = reached._replace(
            step_type=self._repeated(reached.step_type),
            observation=tf.nest.map_structure(self._repeated, reached.observation),
        )
        outputs = self._values(
            self._target_critic_network,
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
        """Returns `[N * B, ...]` as `[N, B, ...]`."""
        return tf.reshape(tensor, [self._num_samples, -1, *tensor.shape[1:]])

    def _action_values(self, evaluation: Evaluation) -> tf.Tensor:
        """Returns the values of the actions, `[N, B]`."""
        return self._by_action(evaluation.outputs)

    def _next_values(self, evaluation: Evaluation) -> Any:
        """Returns the values of the next steps, as `_td_error` takes them."""
        return tf.reduce_mean(self._action_values(evaluation), axis=0)

    def _critic_loss(
        self,
        transitions: actor_critic.Transitions,
        evaluation: Evaluation,
        weights: tf.Tensor | None,
        training: bool,
    ) -> actor_critic.CriticLoss:
        return self._compute_critic_loss(
            transitions, self._next_values(evaluation), weights, training
        )

    def _policy_losses(
        self, evaluation: Evaluation, training: bool
    ) -> tuple[tf.Tensor, losses.MPOTerms]:
        """Returns the policy's loss `[B]`, and what the dual variables' depends on."""
        distributions, _ = self._actor_network(
            evaluation.time_step.observation,
            step_type=evaluation.time_step.step_type,
            training=training,
        )
        return self._policy_loss.policy_loss(
            self._units.normal(distributions),
            evaluation.policy,
            evaluation.actions,
            self._action_values(evaluation),
        )

    def _policy_mean(
        self,
        loss: tf.Tensor,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
    ) -> tf.Tensor:
        return losses.aggregate_losses(
            self._masked(loss, transitions.valid),
            weights,
            regularization_loss=self._actor_network.losses,
        ).total_loss

    def _dual_mean(
        self,
        terms: losses.MPOTerms,
        transitions: actor_critic.Transitions,
        weights: tf.Tensor | None,
    ) -> tf.Tensor:
        loss = self._masked(self._policy_loss.dual_loss(terms), transitions.valid)
        return losses.aggregate_losses(loss, weights).total_loss


# Acme's name.
MPO = MpoAgent


def _shape_of(tensor: tf.Tensor) -> list[Any]:
    """Returns the shape of `[B, D]`, with numbers where they are known."""
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
