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

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    options,
    part_losses,
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
from tfrl.utils import seeds as seeds_lib
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer

# TF-Agents' methods for the three losses.
REFUSED_OVERRIDES = {
    "critic_loss": (
        "override _td_error(predictions, transitions, next_values) or "
        "_compute_next_values(next_time_step, seed)"
    ),
    "actor_loss": "override _compute_actor_loss(time_step, seed, training)",
    "alpha_loss": "override _compute_entropy(time_step, seed, training)",
}
HOOK_ARGUMENTS = {"_compute_entropy": ("time_step", "seed", "training")}


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
    exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None
    observation_network: types.Network | types.Layer | None


class SacAgent(actor_critic.ActorCriticAgent):
    """A SAC agent.

    An update first changes the critics, then the actor (which sees the new critics),
    and then the temperature (which sees the new actor). Each of the three draws actions
    of its own, by seeds that depend on the agent's seed and the train step counter
    alone.

    The entropy, and so `target_entropy`, is measured for actions scaled to [-1, 1], as
    in Stable-Baselines3, so that it does not depend on the units of the actions.
    TF-Agents measures it for the actions themselves. That entropy is larger by the sum
    of the logarithms of half the widths of their ranges, which is 0 for [-1, 1].

    The targets follow the critics at once with the default `target_update_tau` of 1,
    which is TF-Agents'; 0.005 is usual. Returns over several steps leave out the
    entropy of the steps between.
    """

    _info: Any = SacLossInfo
    _refused_overrides = REFUSED_OVERRIDES
    _hook_arguments = HOOK_ARGUMENTS
    critic_loss = part_losses.soft_critic_loss
    actor_loss = part_losses.soft_actor_loss
    alpha_loss = part_losses.alpha_loss
    _alpha_loss = part_losses.mean_alpha_loss

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
          action_spec: A nest of bounded floating specs.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`; or to all critics'
            values `[B, N]`, such as a `CriticEnsembleNetwork`.
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
            minimum; None takes all, and the actor's loss has the minimum, too.
          exploration: A function that makes `collect_policy` from the policy that
            samples, such as one that returns an `OUNoisePolicy`, or, for an actor with
            a `StateDependentNoiseProjectionNetwork`, a `StateDependentNoisePolicy`;
            None collects with the policy that samples itself.
          observation_network: A `Network` (or Keras layer) without state that maps
            observations to what the actor and the critics take for observations, such
            as a network of images. The critics' loss trains it; the actor is trained,
            and acts, with the output of its target. None for no such network.

        Raises:
          ValueError: An action is discrete or unbounded, the reward is not one scalar,
            the networks' outputs do not match, or a number is out of range.
          NotImplementedError: N-step updates with a recurrent network.

        Warns:
          UserWarning: The actor's distributions are normal ones that are not squashed
            into the bounds of the actions; once for each class of agents.
        """
        td, common = options.from_arguments(locals())
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
        # The policies in the losses see embedded time steps.
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
            target_entropy = -_num_dimensions(action_spec) / 2
        self._temperature = make_temperature(
            initial_log_alpha, target_entropy, use_log_alpha_in_alpha_loss
        )
        self._parts = soft_parts(
            self,
            (critic_optimizer, actor_optimizer, alpha_optimizer),
            (critic_loss_weight, actor_loss_weight, alpha_loss_weight),
        )

    def _log_values(
        self, batch: updates.Batch | None = None, extra: Any = None
    ) -> dict[str, tf.Tensor]:
        del extra
        return soft_log_values(self, batch)

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
        distributions = self._policies[training].distribution(time_step).action
        flat = tf.nest.flatten(distributions)
        drawn, log_prob = [], self._log_magnitude
        for distribution, own in zip(
            flat, actor_critic.seeds_of(flat, seed), strict=True
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
            self._target_critic_networks, next_time_step, action
        )
        if self._num_min is None:
            smallest = tf.reduce_min(values, axis=0)
        else:
            noise = seeds_lib.uniform(subset_seed, [self._num_critics], batch_axis=None)
            smallest = losses.minimum_of_subset(values, noise, self._num_min)
        return losses.soft_value(smallest, log_prob, self._temperature.value())

    def _compute_actor_loss(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        action, log_prob = self._draw(time_step, seed, training)
        values = self._values_of_all(self._critic_networks, time_step, action)
        reduce = tf.reduce_min if self._num_min is None else tf.reduce_mean
        return losses.sac_actor_loss(
            reduce(values, axis=0), log_prob, self._temperature.value()
        )

    def _compute_entropy(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns samples of the policy's entropy, `[B]` or `[B, T - 1]`.

        The arguments are as for `_compute_actor_loss`.
        """
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
        """Returns the values of a critic, `[B]`, or of an ensemble, `[N, B]`."""
        values = super()._values(critic, time_step, action, training)
        outer_rank = time_step.step_type.shape.rank
        if values.shape.rank == outer_rank:
            return values
        rest = [i for i in range(values.shape.rank) if i != outer_rank]
        return tf.transpose(values, [outer_rank, *rest])

    def _q_values(self, transitions: updates.Transitions) -> tf.Tensor:
        time_step = self._embedding.trained(transitions.time_step, training=False)
        values = self._values_of_all(
            self._critic_networks, time_step, transitions.action
        )
        return tf.reduce_mean(values, axis=0)

    def _td_error(
        self,
        predictions: tf.Tensor,
        transitions: updates.Transitions,
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


def soft_parts(
    agent: Any, agent_optimizers: Sequence[Any], weights: Sequence[float]
) -> list[updates.Part]:
    """Returns the parts of a soft actor-critic's update.

    Args:
      agent: The agent, with a `_temperature` and an `_alpha_loss`.
      agent_optimizers: The optimizers of the critics, the actor and the temperature; a
        temperature without one is fixed.
      weights: The weights of their losses.
    """
    for_critics, for_actor, for_alpha = agent_optimizers
    parts = [
        agent._critic_part(for_critics, weight=weights[0]),
        agent._actor_part(for_actor, weight=weights[1]),
    ]
    modules = [agent._temperature]
    if for_alpha is None:
        agent._untrained = modules
        return parts
    alpha = agent._part(
        "alpha", agent._alpha_loss, modules, for_alpha, weight=weights[2]
    )
    return [*parts, alpha]


def soft_log_values(agent: Any, batch: updates.Batch | None) -> dict[str, tf.Tensor]:
    """Returns the temperature `alpha`, and of a batch the mean `entropy`."""
    values = {"alpha": agent._temperature.value()}
    if batch is not None:
        time_step = agent._embedding.target(batch.transitions.time_step)
        *_, seed = seeds_lib.split_seed(batch.seed, 3)
        entropy = agent._compute_entropy(time_step, seed, training=False)
        values["entropy"] = losses.masked_mean(entropy, batch.transitions.valid)
    return values


def _num_dimensions(action_spec: Any) -> int:
    """Returns the number of components of all actions."""
    return sum(int(np.prod(spec.shape)) for spec in tf.nest.flatten(action_spec))


def _log_magnitude(action_spec: Any) -> float:
    """Returns the sum of the logarithms of half the widths of all components' ranges.

    This is what scaling actions to [-1, 1] adds to the logarithm of their density.
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
