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
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, normalization, target_networks
from tfrl.agents.sac import soft_actor_critic
from tfrl.networks import network as network_lib
from tfrl.networks import utils as network_utils
from tfrl.policies import actor_policy, greedy_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class DiscreteSacAgent(soft_actor_critic.SoftActorCriticAgent):
    """A SAC agent for one discrete action.

    The targets follow the critics at once with the default `target_update_tau` of 1;
    0.005 is usual.
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
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
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
          target_update_tau: See `SacAgent`.
          target_update_period: See `SacAgent`.
          td_errors_loss_fn: See `SacAgent`.
          gamma: See `SacAgent`.
          reward_scale_factor: See `SacAgent`.
          initial_log_alpha: See `SacAgent`.
          use_log_alpha_in_alpha_loss: See `SacAgent`.
          target_entropy: The entropy to which the temperature is adapted; by default
            0.98 times that of the uniform policy, as in the paper. Where such a policy
            is far from a good one, take less.
          gradient_clipping: See `SacAgent`.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          n_step_update: See `SacAgent`.
          greedy_eval: Whether `policy` takes the most probable action; by default it
            samples, as `collect_policy` does.
          seed: Seed of the policies' own random numbers, for calls without a seed.
          observation_normalizer: See `SacAgent`.
          reward_normalizer: See `SacAgent`.

        Raises:
          ValueError: The action spec is not one scalar with minimum 0, the reward is
            not one scalar, the networks' outputs do not match, or a number is out of
            range.
          NotImplementedError: N-step updates with a recurrent network.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "Discrete SAC")
        action_spec = tensor_spec.from_spec(action_spec)
        self._num_actions = _count_actions(action_spec)
        (
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
            actor_network,
        ) = normalization.normalized_networks(
            observation_normalizer,
            time_step_spec.observation,
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
            actor_network,
        )
        targets = target_networks.twin_critics(
            critic_network,
            critic_network_2,
            target_critic_network,
            target_critic_network_2,
            time_step_spec.observation,
        )
        actor_network = network_lib.as_network(
            actor_network, time_step_spec.observation
        )
        actor_network.create_variables(time_step_spec.observation)
        checks.check_gives_distributions(actor_network, "discrete SAC")
        sampling_policy = actor_policy.ActorPolicy(
            time_step_spec, action_spec, actor_network, seed=seed
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy=(
                greedy_policy.GreedyPolicy(sampling_policy)
                if greedy_eval
                else sampling_policy
            ),
            collect_policy=sampling_policy,
            actor_network=actor_network,
            critic_networks=[critic for critic, _ in targets],
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
        self._train_policy = actor_policy.ActorPolicy(
            time_step_spec, action_spec, actor_network, training=True, seed=seed
        )
        if target_entropy is None:
            target_entropy = 0.98 * math.log(self._num_actions)
        self._setup_temperature(
            alpha_optimizer,
            initial_log_alpha,
            target_entropy,
            use_log_alpha_in_alpha_loss,
            (critic_loss_weight, actor_loss_weight, alpha_loss_weight),
        )

    def _check_critic(self, critic: Any) -> None:
        network_utils.check_single_floating_network_output(
            critic.create_variables(), (self._num_actions,), label=critic.name
        )

    def _log_probs(self, time_step: ts.TimeStep, training: bool) -> tf.Tensor:
        """Returns the logarithms of the actions' probabilities, `[B(, T), A]`."""
        policy = self._train_policy if training else self.collect_policy
        distribution = policy.distribution(time_step).action
        return tf.nn.log_softmax(tf.cast(distribution.logits_parameter(), tf.float32))

    def _action_values(
        self, critic: Any, time_step: ts.TimeStep, training: bool = False
    ) -> tf.Tensor:
        """Returns a critic's values of all actions, `[B(, T), A]`."""
        values, _ = critic(
            time_step.observation, step_type=time_step.step_type, training=training
        )
        return values

    def _values(
        self, critic: Any, time_step: ts.TimeStep, action: Any, training: bool = False
    ) -> tf.Tensor:
        (action,) = tf.nest.flatten(action)
        return losses.action_value(
            self._action_values(critic, time_step, training), action
        )

    def _smallest_values(self, critics: list[Any], time_step: ts.TimeStep) -> tf.Tensor:
        return tf.minimum(*(self._action_values(c, time_step) for c in critics))

    def _compute_next_values(
        self, next_time_step: ts.TimeStep, seed: tf.Tensor
    ) -> tf.Tensor:
        del seed
        targets = [target for _, target in self._target_pairs]
        return losses.expected_soft_value(
            self._smallest_values(targets, next_time_step),
            self._log_probs(next_time_step, training=False),
            self._alpha(),
        )

    def _compute_actor_loss(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        del seed
        return -losses.expected_soft_value(
            self._smallest_values(self._critic_networks, time_step),
            self._log_probs(time_step, training),
            self._alpha(),
        )

    def _compute_entropy(
        self, time_step: ts.TimeStep, seed: tf.Tensor, training: bool
    ) -> tf.Tensor:
        del seed
        return losses.entropy_of(self._log_probs(time_step, training))


def _count_actions(action_spec: Any) -> int:
    """Returns the number of actions; raises a ValueError if the spec is another."""
    specs = tf.nest.flatten(action_spec)
    if len(specs) != 1 or not tensor_spec.is_discrete(specs[0]):
        raise ValueError(
            "action_spec: discrete SAC expects one scalar integer action, got "
            f"{action_spec}; train continuous actions with agents.SacAgent."
        )
    return policy_utils.get_num_actions_from_tensor_spec(specs[0])
