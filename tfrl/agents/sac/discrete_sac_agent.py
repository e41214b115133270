"""Soft Actor-Critic for discrete actions.

The critics map observations to the values of all actions, so that all expectations over
the policy pi are exact. An update minimises

    critics:      sum_i L(y - Q_i(s, a)) for each transition (s, a, r, s'), with
                  y = r + gamma * d * sum_a' pi(a'|s') (min_i Q_i'(s', a')
                                                        - alpha * log pi(a'|s'))
    actor:        sum_a pi(a|s) (alpha * log pi(a|s) - min_i Q_i(s, a))
    temperature:  log alpha * (entropy of pi(.|s) - target entropy)

one after the other, where d is the environment's discount: 0 at a termination, 1 at a
time limit. Christodoulou, "Soft actor-critic for discrete action settings" (2019,
arXiv:1910.07207), equations 10 to 12.

The critics are Q-networks, and the actor gives a distribution:

>>> import keras
>>> from tfrl.agents import DiscreteSacAgent
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, QNetwork
>>> environment = native.load("CartPole-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = DiscreteSacAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     QNetwork(*specs),
...     ActorDistributionNetwork(*specs),
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
...     alpha_optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
...     target_update_tau=0.02,
...     target_entropy=0.14,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic_networks,
    checks,
    critics,
    options,
    updates,
)
from tfrl.agents.sac import sac_agent
from tfrl.policies import greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class DiscreteSacAgent(sac_agent.SoftActorCritic):
    """A SAC agent for one discrete action.

    With the default `target_update_tau` of 1, the targets are copied from the critics
    in each update; 0.005 is usual.
    """

    _num_actions: int

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        critic_network: types.Network | types.Layer,
        actor_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        alpha_optimizer: types.Optimizer | None,
        *,
        actor_loss_weight: float = 1.0,
        critic_loss_weight: float = 0.5,
        alpha_loss_weight: float = 1.0,
        critic_network_2: types.Network | types.Layer | None = None,
        target_critic_network: types.Network | types.Layer | None = None,
        target_critic_network_2: types.Network | types.Layer | None = None,
        initial_log_alpha: float = 0.0,
        use_log_alpha_in_alpha_loss: bool = True,
        target_entropy: float | None = None,
        greedy_eval: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        **settings: Unpack[options.Settings],
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One scalar bounded integer spec with minimum 0.
          critic_network: A `Network` (or Keras layer) that maps observations to the
            values of all actions `[B, A]`, such as a `QNetwork`.
          actor_network: A `Network` (or Keras layer) that maps observations to
            `Categorical` distributions, such as an `ActorDistributionNetwork`.
          actor_optimizer: See `SacAgent`.
          critic_optimizer: See `SacAgent`.
          alpha_optimizer: See `SacAgent`.
          actor_loss_weight: See `SacAgent`.
          critic_loss_weight: See `SacAgent`.
          alpha_loss_weight: See `SacAgent`.
          critic_network_2: See `SacAgent`.
          target_critic_network: See `SacAgent`.
          target_critic_network_2: See `SacAgent`.
          initial_log_alpha: See `SacAgent`.
          use_log_alpha_in_alpha_loss: See `SacAgent`.
          target_entropy: The entropy to which the temperature is adapted; by default
            0.98 times the entropy of the uniform policy, as in the paper. Choose a
            lower entropy if a good policy must be less random than that.
          greedy_eval: Whether `policy` takes the most probable action; by default it
            samples, as `collect_policy` does.
          observation_and_action_constraint_splitter: See `DqnAgent`. Where k of A
            actions are legal, the target entropy is multiplied by log k / log A.
          **settings: See `TdOptions` and `AgentOptions`; `td_errors_loss_fn` is the
            squared error by default.

        Raises:
          ValueError: The action spec is not one scalar with minimum 0, the reward is
            not one scalar, the networks' outputs do not match, or a number is out of
            range.
          NotImplementedError: N-step updates with a recurrent network.
        """
        td, common = options.from_settings(
            type(self), settings, td_errors_loss_fn=tf.math.squared_difference
        )
        time_step_spec = checks.as_time_step_spec(time_step_spec, "Discrete SAC")
        action_spec = tensor_spec.from_spec(action_spec)
        self._num_actions = checks.count_actions(
            action_spec, "discrete SAC", "train continuous actions with agents.SacAgent"
        )
        self._splitter = observation_and_action_constraint_splitter
        networks = actor_critic_networks.make_networks(
            self._seen(time_step_spec),
            action_spec,
            actor_network,
            [
                critic_network,
                critic_network_2,
                target_critic_network,
                target_critic_network_2,
            ],
            without_target_actor=True,
            critics_see_actions=False,
            normalizer=common.observation_normalizer,
        )
        checks.check_gives_distributions(networks.actor, "discrete SAC")
        self._policies = [
            networks.policy(
                time_step_spec,
                action_spec,
                training=training,
                seed=common.seed,
                observation_and_action_constraint_splitter=self._splitter,
            )
            for training in (False, True)
        ]
        sampling_policy = self._policies[0]
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(sampling_policy)
            if greedy_eval
            else sampling_policy,
            sampling_policy,
            networks,
            td,
            common,
        )
        if target_entropy is None:
            target_entropy = 0.98 * math.log(self._num_actions)
        self._set_soft_parts(
            sac_agent.make_temperature(
                initial_log_alpha, target_entropy, use_log_alpha_in_alpha_loss
            ),
            (critic_optimizer, actor_optimizer, alpha_optimizer),
            (critic_loss_weight, actor_loss_weight, alpha_loss_weight),
        )

    def _seen(self, time_step: ts.TimeStep) -> ts.TimeStep:
        """Returns a time step, or its specs, with the part that networks see."""
        if self._splitter is None:
            return time_step
        return time_step._replace(observation=self._splitter(time_step.observation)[0])

    def _log_probs(self, time_step: ts.TimeStep, training: bool) -> tf.Tensor:
        """Returns the logarithms of the actions' probabilities, `[B(, T), A]`."""
        distribution = self._policies[training].distribution(time_step).action
        return tf.nn.log_softmax(tf.cast(distribution.logits_parameter(), tf.float32))

    def _smallest_values(
        self, networks: list[Any], time_step: ts.TimeStep
    ) -> tf.Tensor:
        """Returns the smaller of both critics' values of all actions, `[B(, T), A]`."""
        seen = self._seen(time_step)
        return tf.minimum(*(critics.outputs(net, seen) for net in networks))

    def _critic_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_i L(y - Q_i(s, a))`, and its details."""
        reached = batch.data.next_time_step
        next_values = losses.expected_soft_value(
            self._smallest_values(self._target_critic_networks, reached),
            self._log_probs(reached, training=False),
            self._temperature.value(),
        )
        targets = batch.data.targets(next_values)
        return self._regress(batch, targets)

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `sum_a pi(a|s) (alpha log pi(a|s) - min_i Q_i(s, a))`."""
        time_step = batch.data.time_step
        loss = -losses.expected_soft_value(
            self._smallest_values(self._critic_networks, time_step),
            self._log_probs(time_step, batch.training),
            self._temperature.value(),
        )
        return critics.mean(loss, batch, self._actor_network), {}

    def _entropy(self, batch: updates.Batch) -> tf.Tensor:
        """Returns the entropy of `pi(.|s)`."""
        return losses.entropy_of(self._log_probs(batch.data.time_step, batch.training))

    def _alpha_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the temperature's loss, with less entropy where actions are masked.

        With k legal actions, the target is the same share of log k as of log A.
        """
        if self._splitter is None:
            return super()._alpha_loss(batch)
        _, mask = self._splitter(batch.data.time_step.observation)
        legal = tf.reduce_sum(tf.cast(tf.cast(mask, tf.bool), tf.float32), axis=-1)
        # Environments may mask all actions where an episode has ended; and where there
        # is a single action, the target entropy is 0.
        share = tf.math.log(tf.maximum(legal, 1.0))
        share /= math.log(max(self._num_actions, 2))
        missing = (1.0 - share) * self._temperature.target
        loss = self._temperature.loss(self._entropy(batch) + missing)
        return critics.mean(loss, batch), {}

    def _values(
        self,
        critic: Any,
        time_step: ts.TimeStep,
        action: Any,
        training: bool = False,
    ) -> tf.Tensor:
        return super()._values(critic, self._seen(time_step), action, training)
