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
y is over `num_min` critics, drawn for each update, and the actor's loss has the mean of
all critics instead of the minimum: Chen et al., "Randomized ensembled double
Q-learning" (2021, arXiv:2101.05982), algorithm 1.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    options,
    target_networks,
    updates,
)
from tfrl.agents.sac.tanh_normal_projection_network import (
    std_clip_transform as std_clip_transform,
)
from tfrl.distributions import sampling
from tfrl.policies import actor_policy as actor_policy_lib
from tfrl.policies import greedy_policy, tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds as seeds_lib
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class SacLossInfo(NamedTuple):
    """The parts of the loss, whose sum is the loss, and errors per example.

    Attributes:
      critic_loss: The critics' loss times `critic_loss_weight`, a scalar.
      actor_loss: The actor's loss times `actor_loss_weight`, a scalar.
      alpha_loss: The temperature's loss times `alpha_loss_weight`, a scalar; 0 if the
        temperature is fixed.
      td_loss: The critics' loss of each example, `[B]`, before weighting; 0 where
        masked.
      td_error: Target minus prediction, `[B]` or `[B, T - 1]`, of the critic with the
        largest error; 0 where masked.
    """

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class SacSettings(options.Settings, total=False):
    """The optional arguments of `SacAgent` as keyword arguments."""

    actor_loss_weight: float
    critic_loss_weight: float
    alpha_loss_weight: float
    actor_policy_ctor: Callable[..., Any]
    critic_network_2: types.Network | types.Layer | None
    target_critic_network: types.Network | types.Layer | None
    target_critic_network_2: types.Network | types.Layer | None
    initial_log_alpha: float
    use_log_alpha_in_alpha_loss: bool
    target_entropy: float | None
    greedy_eval: bool
    num_min: int | None
    actor_update_period: int
    exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None
    observation_network: types.Network | types.Layer | None


class SoftActorCritic(actor_critic.ActorCriticAgent):
    """The base of SAC for continuous and for discrete actions: the temperature."""

    _info: Any = SacLossInfo
    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "critic_loss": "override _critic_loss(batch)",
        "actor_loss": "override _actor_loss(batch)",
        "alpha_loss": "override _alpha_loss(batch)",
    }

    def critic_loss(
        self,
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

        It is the loss before its weight, with the random numbers of the next update.

        Args:
          time_steps: The time steps `[B, ...]` at which the actions were taken; `[B, T
            - 1, ...]` for recurrent networks.
          actions: The nest of actions, of the same outer shape.
          next_time_steps: The time steps after them, of the same outer shape.
          td_errors_loss_fn: The agent's own loss function, which TF-Agents' callers
            pass, or None.
          gamma: The discount; None takes the agent's discount.
          reward_scale_factor: The factor of the rewards; None takes the agent's factor.
          weights: See `TFAgent.train`.
          training: Whether the critics are applied as in training.

        Raises:
          ValueError: `td_errors_loss_fn` is not the agent's own.
        """
        if td_errors_loss_fn not in (None, self._td_errors_loss_fn):
            raise ValueError(
                f"td_errors_loss_fn: got {td_errors_loss_fn}, expected None or the "
                f"agent's own, {self._td_errors_loss_fn}; give it to the agent's "
                "constructor."
            )
        reached = self._normalizers.normalize_rewards(next_time_steps)
        steps = actor_critic.transition(time_steps, actions, reached)
        factors = gamma, reward_scale_factor
        return self._loss_of(
            "critic", self._critic_loss, steps, weights, training, *factors
        )

    def actor_loss(
        self,
        time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = True,
    ) -> tf.Tensor:
        """Returns the actor's mean loss before its weight, a scalar.

        Args:
          time_steps: See `critic_loss`.
          weights: See `TFAgent.train`.
          training: Whether the actor is applied as in training.
        """
        steps = actor_critic.transition(time_steps, (), time_steps)
        return self._loss_of("actor", self._actor_loss, steps, weights, training)

    def alpha_loss(
        self,
        time_steps: ts.TimeStep,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the temperature's mean loss, a scalar, even if it is fixed.

        Args:
          time_steps: See `critic_loss`.
          weights: See `TFAgent.train`.
          training: Whether the actor is applied as in training.
        """
        steps = actor_critic.transition(time_steps, (), time_steps)
        return self._loss_of("alpha", self._alpha_loss, steps, weights, training)

    def _set_soft_parts(
        self,
        temperature: updates.Temperature,
        agent_optimizers: Sequence[types.Optimizer | None],
        weights: Sequence[float],
        actor_update_period: int = 1,
    ) -> None:
        """Lists the parts of an update.

        Args:
          temperature: The temperature.
          agent_optimizers: The optimizers of the critics, the actor and the
            temperature; a temperature without one is fixed.
          weights: The weights of their losses.
          actor_update_period: See `SacAgent`.
        """
        number_checks.check_integer(
            "actor_update_period",
            actor_update_period,
            1,
            remedy="1 updates the actor in each train step",
        )
        period = None if actor_update_period == 1 else actor_update_period
        self._temperature = temperature
        for_critics, for_actor, for_alpha = agent_optimizers
        parts = [
            self._critic_part(self._critic_loss, for_critics, weight=weights[0]),
            self._actor_part(
                self._actor_loss,
                for_actor,
                weight=weights[1],
                period=period,
                called=self._critic_networks,
            ),
        ]
        modules = [temperature]
        if for_alpha is None:
            self._untrained = modules
        else:
            alpha = self._part(
                "alpha",
                self._alpha_loss,
                modules,
                for_alpha,
                weight=weights[2],
                period=period,
            )
            parts.append(alpha)
        self._parts = parts

    @abc.abstractmethod
    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the critics' loss, and its details."""

    @abc.abstractmethod
    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the actor's loss, and its details."""

    @abc.abstractmethod
    def _entropy(self, batch: updates.Batch) -> tf.Tensor:
        """Returns samples of the policy's entropy, `[B]` or `[B, T - 1]`."""

    def _alpha_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `log alpha * (entropy - target entropy)`."""
        return critics.mean(self._temperature.loss(self._entropy(batch)), batch), {}

    def _log_values(self) -> dict[str, tf.Tensor]:
        return {
            "alpha": self._temperature.value(),
            "entropy_target": tf.cast(self._temperature.target, tf.float32),
        }

    def _measure_losses(self, batch: updates.Batch, extra: Any) -> dict[str, tf.Tensor]:
        """Returns the mean `entropy`."""
        del extra
        *_, seed = seeds_lib.split_seed(batch.seed, 3)
        entropy = self._entropy(batch._replace(seed=seed))
        return {"entropy": losses.masked_mean(entropy, batch.data.valid)}


class SacAgent(SoftActorCritic):
    """A SAC agent.

    An update first changes the critics, then the actor (which sees the new critics),
    and then the temperature (which sees the new actor). Each of the three draws its own
    actions, with seeds that depend only on the agent's seed and the train step counter.

    The entropy, and so `target_entropy`, is measured for actions scaled to [-1, 1], as
    in Stable-Baselines3, so that it does not depend on the units of the actions.
    TF-Agents measures it for the actions themselves. TF-Agents' entropy is larger by
    the sum of the logarithms of half the widths of the actions' ranges, which is 0 for
    [-1, 1].

    With the default `target_update_tau` of 1, as in TF-Agents, the targets are copied
    from the critics in each update; 0.005 is usual. Returns over several steps leave
    out the entropy of the steps in between.
    """

    _takes_bins = True
    # Whether the critics have target networks.
    _has_target_critics = True
    # Whether the critics' dropout is on in the targets and the actor's loss, too.
    _drops_in_all_passes = False

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
        actor_policy_ctor: Callable[..., types.TFPolicy] = actor_policy_lib.ActorPolicy,
        critic_network_2: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_critic_network_2: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        td_errors_loss_fn: types.LossFn | None = tf.math.squared_difference,
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
        actor_update_period: int = 1,
        exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        observation_network: types.Network | types.Layer | None = None,
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        `TdOptions` and `AgentOptions` explain the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`; or to all critics'
            values `[B, N]`, such as a `CriticEnsembleNetwork`; for a
            `td_errors_loss_fn` that is a `losses.HlGauss`, to logits `[B, N, K]`.
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
          initial_log_alpha: The initial logarithm of the temperature.
          use_log_alpha_in_alpha_loss: Whether the temperature's loss has the factor log
            alpha, rather than alpha.
          target_entropy: The entropy to which the temperature is adapted, of actions
            scaled to [-1, 1]; by default minus half the number of their dimensions.
            Minus the number of dimensions is usual elsewhere.
          greedy_eval: Whether `policy` takes the mode of the distribution; by default
            it samples, as `collect_policy` does.
          num_min: The number of critics of an ensemble over which a target takes the
            minimum; None takes the minimum over all critics, in the actor's loss, too.
          actor_update_period: The number of train steps between updates of the actor
            and of the temperature; the first updates are in the first train step.
          exploration: A function that makes `collect_policy` from the policy that
            samples, such as one that returns an `OUNoisePolicy`, or, for an actor with
            a `StateDependentNoiseProjectionNetwork`, a `StateDependentNoisePolicy`;
            None collects with that policy itself.
          observation_network: A `Network` (or Keras layer) without state, such as a
            network for images. The actor and the critics get its output instead of the
            observations. The critics' loss trains it; the actor is trained, and acts,
            with the output of its target. None for no such network.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          NotImplementedError: N-step updates with a recurrent network.

        Warns:
          UserWarning: The actor's distributions are normal distributions that are not
            squashed into the bounds of the actions. There is one warning for each class
            of agents.
        """
        td = options.TdOptions(
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            gradient_clipping=gradient_clipping,
            n_step_update=n_step_update,
        )
        common = options.AgentOptions(
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        options.warn_of_growing_values(type(self), td)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "SAC")
        action_spec = checks.as_continuous_action_spec(
            action_spec, "SAC", of_one_value=False
        )
        networks = actor_critic_networks.make_networks(
            time_step_spec,
            action_spec,
            actor_network,
            [
                critic_network,
                critic_network_2,
                target_critic_network,
                target_critic_network_2,
            ],
            without_target_actor=True,
            without_target_critics=not self._has_target_critics,
            observation_network=observation_network,
            normalizer=observation_normalizer,
        )
        self._num_critics = _count_critics([critic for critic, _ in networks.critics])
        _check_num_min(num_min, self._num_critics)
        self._num_min = num_min
        checks.check_gives_distributions(
            networks.actor,
            "SAC",
            ", with continuous_projection_net=TanhNormalProjectionNetwork",
        )
        checks.warn_of_unbounded_distributions(type(self), networks.actor)
        seeded = {} if seed is None else {"seed": seed}
        sampling_policy = actor_policy_ctor(
            time_step_spec=time_step_spec,
            action_spec=action_spec,
            actor_network=networks.embedding.of_observations(networks.actor),
            training=False,
            **seeded,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(sampling_policy)
            if greedy_eval
            else sampling_policy,
            sampling_policy if exploration is None else exploration(sampling_policy),
            networks,
            td,
            common,
        )
        # The policies in the losses get embedded time steps.
        self._policies = [
            actor_policy_ctor(
                time_step_spec=time_step_spec._replace(
                    observation=networks.embedding.spec
                ),
                action_spec=action_spec,
                actor_network=networks.actor,
                training=training,
                **seeded,
            )
            for training in (False, True)
        ]
        self._log_magnitude = _log_magnitude(action_spec)
        if target_entropy is None:
            target_entropy = -actions_lib.num_components(action_spec) / 2
        self._set_soft_parts(
            make_temperature(
                initial_log_alpha, target_entropy, use_log_alpha_in_alpha_loss
            ),
            (critic_optimizer, actor_optimizer, alpha_optimizer),
            (critic_loss_weight, actor_loss_weight, alpha_loss_weight),
            actor_update_period,
        )

    def _check_critic(self, critic: Any) -> None:
        if not critics.check_ensemble(critic, self._td_errors_loss_fn):
            super()._check_critic(critic)

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(y - Q_i(s, a))`, and its details."""
        return self._regress(batch, self._targets(batch))

    def _targets(self, batch: updates.Batch) -> tf.Tensor:
        """Returns `y = r + gamma d (min_i Q_i'(s', a') - alpha log pi(a'|s'))`."""
        seed, subset_seed = seeds_lib.split_seed(batch.seed, 2)
        reached = self._embedding.target(batch.data.next_time_step)
        action, log_prob = self._draw(reached, seed)
        drops = self._drops_in_all_passes and batch.training
        values = self._values_of_all(
            self._target_critic_networks, reached, action, drops
        )
        smallest = self._smallest(values, subset_seed)
        alpha = self._temperature.value()
        return batch.data.targets(losses.soft_value(smallest, log_prob, alpha))

    def _smallest(self, values: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns the least of all critics' values `[N, B]`, or of `num_min` of them.

        Args:
          values: The values of all critics, `[N, B]` or `[N, B, T]`.
          seed: The seed of the drawn subset.
        """
        if self._num_min is None:
            return tf.reduce_min(values, axis=0)
        noise = seeds_lib.uniform(seed, [self._num_critics], batch_axis=None)
        return losses.minimum_of_subset(values, noise, self._num_min)

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `alpha log pi(a|s) - min_i Q_i(s, a)`."""
        time_step = self._embedding.target(batch.data.time_step)
        action, log_prob = self._draw(time_step, batch.seed, batch.training)
        drops = self._drops_in_all_passes and batch.training
        values = self._values_of_all(self._critic_networks, time_step, action, drops)
        reduce = tf.reduce_min if self._num_min is None else tf.reduce_mean
        loss = losses.sac_actor_loss(
            reduce(values, axis=0), log_prob, self._temperature.value()
        )
        return critics.mean(loss, batch, self._actor_network), {}

    def _entropy(self, batch: updates.Batch) -> tf.Tensor:
        """Returns `-log pi(a|s)`."""
        time_step = self._embedding.target(batch.data.time_step)
        _, log_prob = self._draw(time_step, batch.seed, batch.training)
        return -log_prob

    def _draw(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool = False
    ) -> tuple[Any, tf.Tensor]:
        """Draws reparameterized actions.

        Returns:
          The nest of actions, and their log densities if they are scaled to [-1, 1],
          `[B]` or `[B, T]`.
        """
        distributions = self._policies[training].distribution(time_step).action
        flat = tf.nest.flatten(distributions)
        drawn, log_prob = [], self._log_magnitude
        for distribution, own in zip(flat, critics.seeds_of(flat, seed), strict=True):
            action, density = sampling.sample_and_log_prob(distribution, own)
            drawn.append(action)
            inner = range(time_step.step_type.shape.rank, density.shape.rank)
            density = tf.reduce_sum(density, list(inner)) if inner else density
            log_prob += tf.cast(density, tf.float32)
        return tf.nest.pack_sequence_as(distributions, drawn), log_prob

    def _values_of_all(
        self,
        networks: Sequence[Any],
        time_step: ts.TimeStep,
        action: Any,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the values of all critics, `[N, B]` or `[N, B, T]`."""
        return critics.all_values(
            networks, time_step, action, training, self._td_errors_loss_fn
        )

    def _q_values(self, time_step: ts.TimeStep, action: Any) -> tf.Tensor:
        embedded = self._embedding.trained(time_step, training=False)
        values = self._values_of_all(self._critic_networks, embedded, action)
        return tf.reduce_mean(values, axis=0)


def make_temperature(
    initial_log_alpha: float, target_entropy: float, use_log_alpha: bool
) -> updates.Temperature:
    """Returns the temperature of a soft actor-critic; see `SacAgent`."""
    number_checks.check_number(
        "initial_log_alpha", initial_log_alpha, remedy="0 is a temperature of 1"
    )
    number_checks.check_number(
        "target_entropy", target_entropy, remedy="None takes the default"
    )
    return updates.Temperature(
        initial_log_alpha,
        target_entropy,
        use_log=use_log_alpha,
        name="initial_log_alpha",
    )


def _log_magnitude(action_spec: Any) -> float:
    """Returns the sum of the logarithms of half the widths of all components' ranges.

    Scaling actions to [-1, 1] adds this sum to the logarithm of their density.
    """
    _, magnitudes = actions_lib.spec_means_and_magnitudes(action_spec)
    return sum(
        float(np.sum(np.log(np.broadcast_to(magnitude, spec.shape))))
        for magnitude, spec in zip(
            tf.nest.flatten(magnitudes), tf.nest.flatten(action_spec), strict=True
        )
    )


def _count_critics(critics: Sequence[Any]) -> int:
    """Returns the number of critics in networks with outputs `[B]` or `[B, N, ...]`."""
    return sum(
        critic.create_variables().shape[0] if target_networks.is_ensemble(critic) else 1
        for critic in critics
    )


def _check_num_min(num_min: int | None, num_critics: int) -> None:
    """Raises an error unless `num_min` is None or at most the number of critics."""
    if num_min is not None:
        number_checks.check_integer(
            "num_min", num_min, 1, remedy="None takes the minimum over all critics"
        )
        if num_min > num_critics:
            raise ValueError(
                f"num_min: expected at most {num_critics}, the number of critics, got "
                f"{num_min}; lower it, or raise the num_critics of the "
                "CriticEnsembleNetwork."
            )
