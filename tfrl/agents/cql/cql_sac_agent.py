"""Conservative Q-learning on Soft Actor-Critic, for recorded experience.

It is SAC (see `agents.sac.sac_agent`), whose critics also minimise, for each recorded
pair (s, a), the mean over both critics of

    alpha' * (1/T log sum_k exp(T Q_i(s, a_k) - log p(a_k)) - Q_i(s, a))

with N actions a_k of the current policy and N uniform ones, and p their densities. So,
without evidence, the critics value no action above the recorded ones. The weight alpha'
is fixed, or, with a threshold tau on the parenthesis, a Lagrange multiplier that
minimises

    -alpha' * (parenthesis - tau)

Kumar et al., "Conservative Q-learning for offline reinforcement learning" (2020,
arXiv:2006.04779), equation 4 and appendix F. The authors' code also takes actions of
the policy at s', and subtracts log 2N; TF-Agents and this agent do neither.

For the first `num_bc_steps` updates the actor clones the recorded actions: it minimises
alpha * log pi(a'|s) - log pi(a|s), where a' is the actor's own action and a the
recorded one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfrl import losses
from tfrl.agents import critics, transitions, updates
from tfrl.agents.sac import sac_agent
from tfrl.distributions import recorded
from tfrl.policies import actor_policy as actor_policy_lib
from tfrl.policies import tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class CqlSacLossInfo(NamedTuple):
    """The parts of the loss, and errors per example.

    The loss is `critic_loss + cql_alpha * cql_loss + actor_loss + alpha_loss`; the
    multiplier has its own update.

    Attributes:
      critic_loss: The critics' TD loss times `critic_loss_weight`, a scalar.
      actor_loss: The actor's loss times `actor_loss_weight`, a scalar.
      alpha_loss: The temperature's loss times `alpha_loss_weight`, a scalar.
      cql_loss: The mean conservative penalty, before its weight, a scalar; for
        recurrent networks, the mean of the sums over time.
      cql_alpha: The weight of the penalty.
      cql_alpha_loss: The loss of the Lagrange multiplier; 0 if the weight is fixed.
      td_loss: The critics' TD loss of each example, `[B]`; 0 where masked.
      td_error: Target minus prediction, `[B]` or `[B, T - 1]`, of the critic with the
        largest error; 0 where masked.
    """

    critic_loss: tf.Tensor
    actor_loss: tf.Tensor
    alpha_loss: tf.Tensor
    cql_loss: tf.Tensor
    cql_alpha: tf.Tensor
    cql_alpha_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class CqlSacAgent(sac_agent.SacAgent):
    """A CQL agent, based on SAC.

    The densities are of actions in their own units, so the threshold `cql_tau` has the
    same meaning as in TF-Agents.

    Recurrent networks are trained on sequences, as in `SacAgent`. At each step, the
    penalty compares the critics' values after unrolling them over the recorded actions
    with their values after unrolling them over drawn actions.
    """

    _info = CqlSacLossInfo
    _takes_bins = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        alpha_optimizer: types.Optimizer | None,
        cql_alpha: float,
        num_cql_samples: int,
        include_critic_entropy_term: bool,
        use_lagrange_cql_alpha: bool,
        cql_alpha_learning_rate: float = 1e-4,
        cql_tau: float = 10.0,
        random_seed: int | None = None,
        reward_noise_variance: float = 0.0,
        num_bc_steps: int = 0,
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
        log_cql_alpha_clipping: tuple[float, float] | None = None,
        softmax_temperature: float = 1.0,
        bc_debug_mode: bool = False,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        n_step_update: int = 1,
        greedy_eval: bool = False,
        exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        `SacAgent`, `TdOptions` and `AgentOptions` explain the arguments that are not
        listed here.

        Args:
          action_spec: One bounded float spec.
          cql_alpha: The weight of the conservative penalty, or the initial value of the
            Lagrange multiplier.
          num_cql_samples: The number `N` of actions of the policy, and of uniform ones,
            in the penalty.
          include_critic_entropy_term: Whether the critics' targets include the entropy.
          use_lagrange_cql_alpha: Whether the weight is a Lagrange multiplier.
          cql_alpha_learning_rate: The learning rate of the multiplier, by Adam.
          cql_tau: The threshold of the penalty, for the multiplier.
          random_seed: Seed of the random numbers in the losses and in the policies.
          reward_noise_variance: The variance of normal noise that is added to the
            rewards, after their scaling.
          num_bc_steps: The number of updates at the start in which the actor clones the
            recorded actions.
          critic_loss_weight: See `SacAgent`; the penalty is not multiplied by it.
          log_cql_alpha_clipping: The smallest and the largest logarithm of the
            multiplier.
          softmax_temperature: The factor `T` of the values in the penalty.
          bc_debug_mode: Whether the critics minimise the penalty alone.

        Raises:
          ValueError: There are several actions, a number is out of range, or an
            argument of `SacAgent` is wrong.
          NotImplementedError: N-step updates with a recurrent network.
        """
        if len(tf.nest.flatten(action_spec)) != 1:
            raise ValueError(
                f"action_spec: CqlSacAgent expects one spec, got {action_spec}; use a "
                "FlattenActionWrapper, or train with agents.IqlAgent."
            )
        _check_numbers(
            cql_alpha, num_cql_samples, reward_noise_variance, softmax_temperature
        )
        super().__init__(
            time_step_spec,
            action_spec,
            critic_network,
            actor_network,
            actor_optimizer,
            critic_optimizer,
            alpha_optimizer,
            actor_loss_weight=actor_loss_weight,
            critic_loss_weight=critic_loss_weight,
            alpha_loss_weight=alpha_loss_weight,
            actor_policy_ctor=actor_policy_ctor,
            critic_network_2=critic_network_2,
            target_critic_network=target_critic_network,
            target_critic_network_2=target_critic_network_2,
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            initial_log_alpha=initial_log_alpha,
            use_log_alpha_in_alpha_loss=use_log_alpha_in_alpha_loss,
            target_entropy=target_entropy,
            gradient_clipping=gradient_clipping,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            n_step_update=n_step_update,
            greedy_eval=greedy_eval,
            exploration=exploration,
            seed=random_seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._num_samples = num_cql_samples
        self._include_entropy = include_critic_entropy_term
        self._cql_tau = cql_tau
        self._reward_noise = math.sqrt(reward_noise_variance)
        self._num_bc_steps = num_bc_steps
        self._softmax_temperature = softmax_temperature
        self._penalty_alone = bc_debug_mode
        self._fixed_cql_alpha = cql_alpha
        self._critic_loss_weight = critic_loss_weight
        self._multiplier: updates.Temperature | None = None
        critic, actor, *_ = self._parts
        critic.loss, critic.weight = self._conservative_loss, 1.0
        if num_bc_steps:
            actor.loss = self._cloning_or_actor_loss
        if use_lagrange_cql_alpha:
            self._multiplier = _multiplier(cql_alpha, log_cql_alpha_clipping)
            multiplier = updates.Part(
                "cql_alpha",
                self._multiplier_loss,
                [self._multiplier],
                keras.optimizers.Adam(cql_alpha_learning_rate),
                after=self._multiplier.project,
                counts=False,
            )
            self._parts = [*self._parts, multiplier]

    def _log_values(self) -> dict[str, tf.Tensor]:
        return super()._log_values() | {"cql_alpha": self._cql_alpha()}

    def _measure_losses(self, batch: updates.Batch, extra: Any) -> dict[str, tf.Tensor]:
        """Returns the mean `entropy`, and `cql_loss`."""
        return super()._measure_losses(batch, extra) | {"cql_loss": extra.cql_loss}

    def _cql_alpha(self) -> tf.Tensor:
        if self._multiplier is None:
            return tf.constant(self._fixed_cql_alpha, tf.float32)
        return self._multiplier.value()

    def _targets(self, batch: updates.Batch) -> tf.Tensor:
        """Returns SAC's targets, with or without the entropy."""
        if self._include_entropy:
            return super()._targets(batch)
        reached = batch.data.next_time_step
        action, _ = self._draw(reached, batch.seed)
        values = self._values_of_all(self._target_critic_networks, reached, action)
        return batch.data.targets(tf.reduce_min(values, axis=0))

    def _conservative_loss(
        self, batch: updates.Batch
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the critics' TD loss plus the penalty, each times its weight."""
        td_loss, details = self._critic_loss(batch)
        critic_loss = self._critic_loss_weight * td_loss
        *_, for_penalty = seeds.split_seed(batch.seed, 3)
        penalty = self._penalty(batch.data, for_penalty)
        cql_loss = critics.mean(penalty, batch)
        alpha = tf.stop_gradient(self._cql_alpha())
        bellman = 0.0 if self._penalty_alone else critic_loss
        return bellman + alpha * cql_loss, {
            **details,
            "critic_loss": critic_loss,
            "cql_loss": cql_loss,
            "cql_alpha": alpha,
            # With 0 for masked transitions.
            "excess": critics.mean(penalty - self._cql_tau, batch),
        }

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the critics' TD loss, with noise in the rewards."""
        for_targets, for_noise, _ = seeds.split_seed(batch.seed, 3)
        data = batch.data
        if self._reward_noise:
            noise = seeds.normal(for_noise, tf.shape(data.reward))
            noisy = data.reward + self._reward_noise * noise
            data = data._replace(reward=tf.where(data.valid, noisy, 0.0))
        return super()._critic_loss(batch._replace(data=data, seed=for_targets))

    def _multiplier_loss(
        self, batch: updates.Batch
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the multiplier times the threshold minus the penalty."""
        assert self._multiplier is not None
        return self._multiplier.loss(-batch.details["excess"]), {}

    def _penalty(self, data: transitions.Transitions, seed: tf.Tensor) -> tf.Tensor:
        """Returns the conservative penalty, a mean over the critics.

        It is `[B]`, or `[B, T - 1]` for recurrent networks.
        """
        batch_size = tf.shape(data.reward)[0]
        for_policy, for_uniform = seeds.split_seed(seed, 2)

        def repeated(number: int) -> ts.TimeStep:
            return tf.nest.map_structure(
                lambda t: tf.repeat(t, number, axis=0), data.time_step
            )

        def by_example(values: tf.Tensor) -> tf.Tensor:
            inner = tf.shape(values)[1:]
            return tf.reshape(values, tf.concat([[batch_size, -1], inner], axis=0))

        def by_sample(values: tf.Tensor) -> tf.Tensor:
            order = [1, 0, *range(2, values.shape.rank + 1)]
            return tf.transpose(by_example(values), order)

        own, log_prob = self._draw(repeated(self._num_samples), for_policy, False)
        (own,) = tf.nest.flatten(own)
        (spec,) = tf.nest.flatten(self.action_spec)
        share = seeds.uniform(for_uniform, tf.shape(own))
        width = spec.maximum - spec.minimum
        uniform = tf.cast(spec.minimum + share * width, own.dtype)
        num_dimensions = spec.shape.num_elements()
        # The log magnitude turns densities of scaled actions into densities of actions.
        log_uniform = -self._log_magnitude - num_dimensions * math.log(2)
        of_own = by_sample(log_prob - self._log_magnitude)
        log_densities = tf.stop_gradient(
            tf.concat([of_own, tf.fill(tf.shape(of_own), log_uniform)], axis=0)
        )
        # Each example's own actions and then its uniform ones.
        drawn = tf.concat([by_example(own), by_example(uniform)], axis=1)
        drawn = tf.reshape(drawn, tf.concat([[-1], tf.shape(own)[1:]], axis=0))
        action = tf.nest.pack_sequence_as(self.action_spec, [tf.stop_gradient(drawn)])
        sampled = self._values_of_all(
            self._critic_networks, repeated(2 * self._num_samples), action
        )
        recorded_values = self._values_of_all(
            self._critic_networks, data.time_step, data.action
        )
        penalties = [
            losses.conservative_penalty(
                of_record,
                by_sample(of_sample),
                log_densities,
                self._softmax_temperature,
            )
            for of_record, of_sample in zip(
                tf.unstack(recorded_values), tf.unstack(sampled), strict=True
            )
        ]
        return tf.add_n(penalties) / len(penalties)

    def _cloning_or_actor_loss(
        self, batch: updates.Batch
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the cloning loss in the first updates, and then the actor's."""
        loss = tf.cond(
            self.train_step_counter < self._num_bc_steps,
            lambda: self._cloning_loss(batch),
            lambda: self._actor_loss(batch)[0],
        )
        return loss, {}

    def _cloning_loss(self, batch: updates.Batch) -> tf.Tensor:
        """Returns the mean of `alpha log pi(a'|s) - log pi(a|s)`."""
        time_step = batch.data.time_step
        distributions = self._policies[batch.training].distribution(time_step).action
        log_prob_of_record = recorded.log_probability(
            distributions, batch.data.action, self.action_spec
        )
        _, log_prob = self._draw(time_step, batch.seed, batch.training)
        alpha = self._temperature.value()
        loss = losses.sac_actor_loss(log_prob_of_record, log_prob, alpha)
        return critics.mean(loss, batch, self._actor_network)


def _multiplier(
    value: float, bounds: tuple[float, float] | None
) -> updates.Temperature:
    initial = math.log(max(value, 1e-12))
    low, high = bounds or (-math.inf, math.inf)
    if not low < high or (bounds and not low <= initial <= high):
        raise ValueError(
            "log_cql_alpha_clipping: expected two rising numbers around "
            f"{initial:g}, the logarithm of cql_alpha, got {bounds}; widen them."
        )
    return updates.Temperature(
        initial, use_log=False, bounds=bounds, name="log_cql_alpha"
    )


def _check_numbers(
    cql_alpha: float,
    num_cql_samples: int,
    reward_noise_variance: float,
    softmax_temperature: float,
) -> None:
    number_checks.check_number(
        "cql_alpha", cql_alpha, 0.0, remedy="5 is usual, and 0 leaves out the penalty"
    )
    number_checks.check_integer(
        "num_cql_samples", num_cql_samples, 1, remedy="10 is usual"
    )
    number_checks.check_number(
        "reward_noise_variance", reward_noise_variance, 0.0, remedy="0 is without noise"
    )
    number_checks.check_number(
        "softmax_temperature",
        softmax_temperature,
        0.0,
        excludes_low=True,
        remedy="1 is usual",
    )
