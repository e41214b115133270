"""Twin delayed deep deterministic policy gradient (TD3).

For a transition (s, a, r, s') both critics minimise L(y - Q_i(s, a)) with the target

    y = r + gamma * d * min_i Q_i_target(s', a')
    a' = clip(mu_target(s') + clip(N(0, sigma^2), -c, c), bounds of the actions)

where d is the environment's discount: 0 at a termination, 1 at a time limit. At every
`actor_update_period`-th train step the actor mu minimises -Q_1(s, mu(s)). The actions
that are collected have Gaussian noise. Fujimoto, van Hoof and Meger, "Addressing
function approximation error in actor-critic methods" (2018, arXiv:1802.09477),
algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    options,
    updates,
)
from tfrl.policies import gaussian_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class Td3Info(NamedTuple):
    """Details of the loss.

    Attributes:
      actor_loss: The mean of -Q_1(s, mu(s)), a scalar; in train steps that do not
        update the actor, the loss of its last update.
      critic_loss: The mean loss of both critics together, a scalar.
      td_loss: The loss of both critics for each example before weighting, `[B]`, zero
        where masked. For recurrent networks, it is summed over time.
      td_error: Target minus prediction, `[B]` (`[B, T-1]` for recurrent networks), of
        the critic with the larger error.
    """

    actor_loss: tf.Tensor
    critic_loss: tf.Tensor
    td_loss: Any = ()
    td_error: Any = ()


class Td3Settings(options.Settings, total=False):
    """The optional arguments of `Td3Agent` as keyword arguments."""

    exploration_noise_std: types.FloatOrSchedule
    critic_network_2: types.Network | types.Layer | None
    target_actor_network: types.Network | types.Layer | None
    target_critic_network: types.Network | types.Layer | None
    target_critic_network_2: types.Network | types.Layer | None
    actor_update_period: int
    target_policy_noise: float
    target_policy_noise_clip: float
    noise_scaled_to_spec: bool


class Td3Agent(actor_critic.LossesOfParts):
    """A TD3 agent.

    `train` updates the critics first, so the actor learns from the new first critic,
    and returns each loss as it was before its own update.
    """

    _info = Td3Info

    _takes_bins = True

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        exploration_noise_std: types.FloatOrSchedule = 0.1,
        critic_network_2: types.Network | types.Layer | None = None,
        target_actor_network: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_critic_network_2: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        actor_update_period: int = 1,
        td_errors_loss_fn: types.LossFn | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        target_policy_noise: float = 0.2,
        target_policy_noise_clip: float = 0.5,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        n_step_update: int = 1,
        noise_scaled_to_spec: bool = False,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        The defaults are TF-Agents'. The paper delays the updates of the actor and of
        the targets, `actor_update_period=2, target_update_period=2`, moves the targets
        by `target_update_tau=0.005`, and defines the noise for actions scaled to [-1,
        1], which is `noise_scaled_to_spec=True`.

        `TdOptions` and `AgentOptions` explain the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded float specs.
          actor_network: A `Network` (or Keras layer) that maps observations to actions,
            such as an `ActorNetwork`.
          critic_network: A `Network` (or Keras layer) that maps pairs of observations
            and actions to values `[B]`, such as a `CriticNetwork`, or to those of both
            critics, `[B, 2]`; for a `td_errors_loss_fn` that is a `losses.HlGauss`, to
            logits `[B, 2, K]`, as a `CriticEnsembleNetwork` gives them.
          actor_optimizer: The optimizer of the actor; None for an agent that never
            trains.
          critic_optimizer: The optimizer of both critics; None for an agent that never
            trains.
          exploration_noise_std: The standard deviation of the noise on collected
            actions; see the `scale` of `GaussianPolicy`. A Keras schedule follows the
            train step counter.
          critic_network_2: The second critic; a copy of the first with other initial
            weights if None.
          target_actor_network: The target of the actor; a new copy if None.
          target_critic_network: The target of the first critic; a new copy if None.
          target_critic_network_2: The target of the second critic; a new copy if None.
          actor_update_period: The number of train steps between updates of the actor;
            the first update is in the first train step.
          target_policy_noise: The standard deviation of the noise on the target
            actor's actions.
          target_policy_noise_clip: The largest absolute value of this noise.
          noise_scaled_to_spec: Whether both kinds of noise are in units of half the
            range of each action, not in the action's own units.

        Raises:
          ValueError: An action is discrete or has no bounds, a number is out of range,
            a network does not fit the specs, or there is a `target_critic_network_2`
            without `critic_network_2`.
          NotImplementedError: `n_step_update` is not 1 for recurrent networks.
        """
        train_step_counter = checks.as_train_step_counter(train_step_counter)
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
        time_step_spec = checks.as_time_step_spec(time_step_spec, "TD3")
        action_spec = checks.as_continuous_action_spec(action_spec, "TD3")
        _check_numbers(
            target_policy_noise, target_policy_noise_clip, actor_update_period
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
            target_actor_network=target_actor_network,
            normalizer=observation_normalizer,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            networks.policy(time_step_spec, action_spec, seed=seed),
            gaussian_policy.GaussianPolicy(
                networks.policy(time_step_spec, action_spec, clip=False, seed=seed),
                scale=exploration_noise_std,
                step=train_step_counter,
                seed=seed,
                scaled_to_spec=noise_scaled_to_spec,
            ),
            networks,
            td,
            common,
        )
        self._target_policy_noise = target_policy_noise
        self._target_policy_noise_clip = target_policy_noise_clip
        self._noise_scaled_to_spec = noise_scaled_to_spec
        self._parts = [
            self._critic_part(self._critic_loss, critic_optimizer),
            self._actor_part(
                self._actor_loss, actor_optimizer, period=actor_update_period
            ),
        ]

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `L(y - Q_1(s, a)) + L(y - Q_2(s, a))`, and its details.

        Here `y = r + gamma d min_i Q_i_target(s', a')`.
        """
        reached = batch.data.next_time_step
        actions = self._target_actions(reached, batch.seed)
        values = critics.all_values(
            self._target_critic_networks,
            reached,
            actions,
            loss_fn=self._td_errors_loss_fn,
        )
        targets = batch.data.targets(losses.clipped_double_q(tf.unstack(values)))
        return self._regress(batch, targets)

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `-Q_1(s, mu(s))`."""
        time_step = batch.data.time_step
        actions = critics.outputs(self._actor_network, time_step, batch.training)
        loss = -self._q_values(time_step, actions)
        return critics.mean(loss, batch, self._actor_network), {}

    def _check_critic(self, critic: Any) -> None:
        if not critics.check_ensemble(critic, self._td_errors_loss_fn):
            super()._check_critic(critic)

    def _q_values(self, time_step: ts.TimeStep, action: Any) -> tf.Tensor:
        """Returns the first critic's values of actions, `[B]` or `[B, T]`."""
        first = self._critic_networks[:1]
        values = critics.all_values(
            first, time_step, action, loss_fn=self._td_errors_loss_fn
        )
        is_ensemble = values.shape.rank > time_step.step_type.shape.rank
        return values[0] if is_ensemble else values

    def _target_actions(self, time_steps: ts.TimeStep, seed: tf.Tensor) -> Any:
        """Returns the target actor's actions with noise, inside the bounds."""
        actions = critics.outputs(self._target_actor_network, time_steps)
        smoothed = [
            self._smoothed(action, spec, own)
            for action, spec, own in zip(
                tf.nest.flatten(actions),
                tf.nest.flatten(self.action_spec),
                critics.seeds_of(actions, seed),
                strict=True,
            )
        ]
        return tf.nest.pack_sequence_as(actions, smoothed)

    def _smoothed(self, action: tf.Tensor, spec: Any, seed: tf.Tensor) -> tf.Tensor:
        unit: Any = 1.0
        if self._noise_scaled_to_spec:
            _, unit = actions_lib.spec_means_and_magnitudes(spec)
        noise = seeds.normal(seed, tf.shape(action), action.dtype)
        scale, limit = (
            tf.cast(number * unit, action.dtype)
            for number in (self._target_policy_noise, self._target_policy_noise_clip)
        )
        return losses.smoothed_action(
            action, scale * noise, limit, spec.minimum, spec.maximum
        )


def _check_numbers(noise: Any, noise_clip: Any, actor_update_period: Any) -> None:
    number_checks.check_number(
        "target_policy_noise", noise, 0.0, remedy="0 adds no noise"
    )
    number_checks.check_number(
        "target_policy_noise_clip", noise_clip, 0.0, remedy="0 adds no noise"
    )
    number_checks.check_integer(
        "actor_update_period",
        actor_update_period,
        1,
        remedy="1 updates the actor in each train step",
    )
