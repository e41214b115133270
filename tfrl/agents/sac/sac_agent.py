"""Soft Actor-Critic for continuous actions.

With actions a ~ pi drawn from the current policy, pi's parameters theta, critics Q_1
and Q_2 and their targets Q_i', an update minimises

    critics:      sum_i L(y - Q_i(s, a)) for each transition (s, a, r, s'), with
                  y = r + gamma * d * (min_i Q_i'(s', a') - alpha * log pi(a'|s'))
    actor:        alpha * log pi(a|s) - min_i Q_i(s, a), through a = a(theta, noise)
    temperature:  log alpha * (-log pi(a|s) - target entropy)

one after the other, where d is the environment's discount: 0 at a termination, 1 at a
time limit. Haarnoja et al., "Soft actor-critic algorithms and applications" (2018,
arXiv:1812.05905), equations 5, 7 and 18. With an ensemble of N critics, the minimum in
y is that over `num_min` of them, drawn for each update, and the actor's is the mean of
all: Chen et al., "Randomized ensembled double Q-learning" (2021, arXiv:2101.05982),
algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import actor_critic, checks, normalization
from tfrl.agents.sac import construction, soft_actor_critic
from tfrl.agents.sac.soft_actor_critic import SacLossInfo as SacLossInfo
from tfrl.agents.sac.tanh_normal_projection_network import (
    std_clip_transform as std_clip_transform,
)
from tfrl.distributions import sampling
from tfrl.networks import network as network_lib
from tfrl.policies import actor_policy as actor_policy_lib
from tfrl.policies import greedy_policy, tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.utils import seeds as seeds_lib

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class SacAgent(soft_actor_critic.SoftActorCriticAgent):
    """A SAC agent.

    The entropy, and so `target_entropy`, is that of actions scaled to [-1, 1], as in
    Stable-Baselines3, so that it does not depend on the units of the actions. TF-Agents
    takes that of the actions themselves, which is larger by the sum of the logarithms
    of half the widths of their ranges; this is the same for ranges of [-1, 1].

    The targets follow the critics at once with the default `target_update_tau` of 1,
    which is TF-Agents'; 0.005 is usual.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        alpha_optimizer: types.Optimizer | None,
        actor_loss_weight: float = 1.0,
        critic_loss_weight: float = 0.5,
        alpha_loss_weight: float = 1.0,
        actor_policy_ctor: Callable[..., Any] = actor_policy_lib.ActorPolicy,
        critic_network_2: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_critic_network_2: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int = 1,
        td_errors_loss_fn: types.LossFn = tf.math.squared_difference,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        initial_log_alpha: float = 0.0,
        use_log_alpha_in_alpha_loss: bool = True,
        target_entropy: float | None = None,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        n_step_update: int = 1,
        greedy_eval: bool = False,
        num_min: int | None = None,
        exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded floating specs.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`; or to those of all
            critics, `[B, N]`, such as a `CriticEnsembleNetwork`.
          actor_network: A `Network` (or Keras layer) that maps observations to
            distributions of actions, such as an `ActorDistributionNetwork` with a
            `TanhNormalProjectionNetwork`.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of all critics; None as for the actor.
          alpha_optimizer: The optimizer of the temperature's logarithm; None keeps the
            temperature at its initial value.
          actor_loss_weight: The weight of the actor's loss.
          critic_loss_weight: The weight of the critics' loss.
          alpha_loss_weight: The weight of the temperature's loss.
          actor_policy_ctor: A function of `time_step_spec`, `action_spec`,
            `actor_network`, `training` and, if it is not None, `seed`, that makes the
            policy.
          critic_network_2: The second critic; a copy of the first with other initial
            weights if None.
          target_critic_network: The target of the first critic; a copy if None.
          target_critic_network_2: The target of the second critic; a copy if None.
          target_update_tau: The step size of the targets' soft update; 1 copies the
            weights.
          target_update_period: The number of train steps between updates of the
            targets.
          td_errors_loss_fn: A loss of (targets, predictions), element by element.
          gamma: The discount factor.
          reward_scale_factor: The factor by which the rewards are multiplied.
          initial_log_alpha: The initial logarithm of the temperature.
          use_log_alpha_in_alpha_loss: Whether the temperature's loss has the factor log
            alpha, rather than alpha.
          target_entropy: The entropy to which the temperature is adapted, of actions
            scaled to [-1, 1]; by default minus half the number of their dimensions.
            Minus the number of dimensions is usual elsewhere.
          gradient_clipping: The largest norm of each variable's gradient.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          n_step_update: The number `n` of steps in the return; `train` then takes
            experience with `T = n + 1`. The entropy of the steps between is left out.
          greedy_eval: Whether `policy` takes the mode of the distribution; by default
            it samples, as `collect_policy` does.
          num_min: The number of critics of an ensemble over which a target takes the
            minimum; None takes all, and the actor's loss has the minimum, too.
          exploration: A function that makes `collect_policy` from the policy that
            samples, such as one that returns an `OUNoisePolicy`, or, for an actor with
            a `StateDependentNoiseProjectionNetwork`, a `StateDependentNoisePolicy`;
            None collects with the policy that samples itself.
          seed: Seed of the random numbers in the losses and in the policies.
          observation_normalizer: Normalizes the observations that the networks see, in
            the policies and the losses; such as a `StreamingTensorNormalizer` of the
            observation spec. Loops update it; see `update_normalizers`.
          reward_normalizer: Normalizes the rewards that the losses see, before
            `reward_scale_factor`; such as a `RewardNormalizer`.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          NotImplementedError: N-step updates with a recurrent network.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "SAC")
        action_spec = construction.check_action_spec(action_spec)
        input_spec = (time_step_spec.observation, action_spec)
        (
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
        ) = normalization.normalized_critics(
            observation_normalizer,
            input_spec,
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
        )
        targets = construction.critics_with_targets(
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
            input_spec,
        )
        critics = [critic for critic, _ in targets]
        self._num_critics = construction.count_critics(critics)
        construction.check_num_min(num_min, self._num_critics)
        self._num_min = num_min
        (actor_network,) = normalization.normalized_networks(
            observation_normalizer,
            time_step_spec.observation,
            network_lib.as_network(actor_network, time_step_spec.observation),
        )
        actor_network.create_variables(time_step_spec.observation)
        checks.check_gives_distributions(
            actor_network,
            "SAC",
            ", with continuous_projection_net=TanhNormalProjectionNetwork",
        )
        specs = {"time_step_spec": time_step_spec, "action_spec": action_spec}
        seeded = {} if seed is None else {"seed": seed}
        sampling_policy = actor_policy_ctor(
            **specs, actor_network=actor_network, training=False, **seeded
        )
        super().__init__(
            **specs,
            policy=(
                greedy_policy.GreedyPolicy(sampling_policy)
                if greedy_eval
                else sampling_policy
            ),
            collect_policy=(
                sampling_policy if exploration is None else exploration(sampling_policy)
            ),
            actor_network=actor_network,
            critic_networks=critics,
            target_pairs=targets,
            actor_optimizer=actor_optimizer,
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
        self._sampling_policy = sampling_policy
        self._train_policy = actor_policy_ctor(
            **specs, actor_network=actor_network, training=True, **seeded
        )
        self._log_magnitude = construction.log_magnitude(action_spec)
        if target_entropy is None:
            target_entropy = -construction.num_dimensions(action_spec) / 2
        self._setup_temperature(
            alpha_optimizer,
            initial_log_alpha,
            target_entropy,
            use_log_alpha_in_alpha_loss,
            (critic_loss_weight, actor_loss_weight, alpha_loss_weight),
        )

    def _check_critic(self, critic: Any) -> None:
        spec = critic.create_variables()
        if not isinstance(spec, tf.TensorSpec) or spec.shape.rank != 1:
            super()._check_critic(critic)

    def _draw(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tuple[Any, tf.Tensor]:
        """Draws reparameterized actions.

        Returns:
          The nest of actions, and their log densities if they are scaled to [-1, 1],
          `[B]` or `[B, T]`.
        """
        policy = self._train_policy if training else self._sampling_policy
        distributions = policy.distribution(time_step).action
        flat = tf.nest.flatten(distributions)
        drawn, log_prob = [], self._log_magnitude
        for distribution, own in zip(
            flat,
            [seed] if len(flat) == 1 else seeds_lib.split_seed(seed, len(flat)),
            strict=True,
        ):
            action, density = sampling.sample_and_log_prob(distribution, own)
            drawn.append(action)
            inner = range(time_step.step_type.shape.rank, density.shape.rank)
            density = tf.reduce_sum(density, list(inner)) if inner else density
            log_prob += tf.cast(density, tf.float32)
        return tf.nest.pack_sequence_as(distributions, drawn), log_prob

    def _compute_next_values(
        self, next_time_step: ts.TimeStep, seed: tf.Tensor
    ) -> tf.Tensor:
        seed, subset_seed = seeds_lib.split_seed(seed, 2)
        action, log_prob = self._draw(next_time_step, seed, training=False)
        values = self._values_of_all(
            [target for _, target in self._target_pairs], next_time_step, action
        )
        if self._num_min is None:
            smallest = tf.reduce_min(values, axis=0)
        else:
            noise = seeds_lib.uniform(
                subset_seed, [self._num_critics], per_example=False
            )
            smallest = losses.minimum_of_subset(values, noise, self._num_min)
        return losses.soft_value(smallest, log_prob, self._alpha())

    def _compute_actor_loss(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        action, log_prob = self._draw(time_step, seed, training)
        values = self._values_of_all(self._critic_networks, time_step, action)
        reduce = tf.reduce_min if self._num_min is None else tf.reduce_mean
        return losses.sac_actor_loss(reduce(values, axis=0), log_prob, self._alpha())

    def _compute_entropy(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        _, log_prob = self._draw(time_step, seed, training)
        return -log_prob

    def _values_of_all(
        self, critics: list[Any], time_step: ts.TimeStep, action: Any
    ) -> tf.Tensor:
        """Returns the values of all critics, `[N, B]` or `[N, B, T]`."""
        values = [self._values(critic, time_step, action) for critic in critics]
        return tf.stack(values) if len(values) > 1 else values[0]

    def _values(
        self, critic: Any, time_step: ts.TimeStep, action: Any, training: bool = False
    ) -> tf.Tensor:
        """Returns a critic's values `[B]`, or those of an ensemble `[N, B]`."""
        values = super()._values(critic, time_step, action, training)
        outer_rank = time_step.step_type.shape.rank
        if values.shape.rank == outer_rank:
            return values
        rest = [i for i in range(values.shape.rank) if i != outer_rank]
        return tf.transpose(values, [outer_rank, *rest])

    def _q_values(self, transitions: actor_critic.Transitions) -> tf.Tensor:
        values = self._values_of_all(
            self._critic_networks, transitions.time_step, transitions.action
        )
        return tf.reduce_mean(values, axis=0)

    def _td_error(
        self,
        predictions: tf.Tensor,
        transitions: actor_critic.Transitions,
        next_values: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if predictions.shape.rank == next_values.shape.rank:
            return super()._td_error(predictions, transitions, next_values)
        each = [
            super(SacAgent, self)._td_error(one, transitions, next_values)
            for one in tf.unstack(predictions)
        ]
        td_losses, td_errors = zip(*each, strict=True)
        return tf.add_n(td_losses), losses.largest_error(td_errors)
