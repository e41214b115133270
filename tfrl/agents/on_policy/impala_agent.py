"""The agent of the importance weighted actor-learner architecture (IMPALA).

From sequences that a policy mu has collected, one update of the policy pi minimises

    -A log pi(a|s) + c_V (V(s) - vs)^2 - c_H H(pi(.|s))

where V-trace computes vs and A with the ratios pi / mu. Espeholt et al., "IMPALA:
Scalable distributed deep-RL with importance weighted actor-learner architectures"
(2018, arXiv:1802.01561), section 4.2.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.on_policy import ImpalaAgent
>>> from tfrl.agents.ppo import ppo_networks
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> actor_net, value_net = ppo_networks.create_networks(observation_spec, action_spec)
>>> agent = ImpalaAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     keras.optimizers.Adam(1e-3),
...     actor_net,
...     value_net,
... )
>>> sorted(agent.collect_data_spec.policy_info["dist_params"])
['logits']
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import losses
from tfrl.agents import options, tf_agent, transitions
from tfrl.agents.on_policy import (
    on_policy_agent,
    on_policy_options,
    training_data,
)
from tfrl.networks import network as network_lib
from tfrl.networks import sequential
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import number_checks


class ImpalaLossInfo(NamedTuple):
    """The parts of the loss, and two measures of the learning.

    The loss is the sum of the parts and of the networks' own regularisation losses.

    Attributes:
      policy_gradient_loss: The loss of the policy.
      value_estimation_loss: The critic's loss, times its weight.
      entropy_regularization_loss: Minus the entropy, times its weight.
      explained_variance: The share of the targets' variance that the values explain.
      approx_kl: The approximate KL divergence of the policy from the policy that
        collected.
    """

    policy_gradient_loss: Any
    value_estimation_loss: Any
    entropy_regularization_loss: Any
    explained_variance: Any
    approx_kl: Any


class ImpalaAgent(on_policy_agent.OnPolicyAgent):
    """An IMPALA agent, with the defaults of Acme.

    `train` takes frames `[B, T + 1]` of any policy near the current one, such as 21 of
    each of 16 environments, and does one update. The frames hold the distributions from
    which the actions were drawn and, for recurrent networks, the state before each
    action; `train` uses the first of these states. The networks' states are reset where
    an episode begins inside a sequence.

    Sequences may come from actors in separate processes, whose weights are older,
    or from a loop in this process; see `collect_update_period`.
    """

    _info = ImpalaLossInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        *,
        max_abs_reward: float | None = None,
        clip_rho: float | None = 1.0,
        clip_pg_rho: float | None = 1.0,
        collect_update_period: int = 1,
        **settings: Unpack[on_policy_options.OnPolicySettings],
    ) -> None:
        """Builds the policies and the optimizer's variables.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          optimizer: The optimizer of both networks; None for an agent that never
            trains.
          actor_net: See `PPOAgent`.
          value_net: See `PPOAgent`.
          max_abs_reward: The largest absolute value of a reward; larger ones are
            clipped. None does not clip.
          clip_rho: The largest ratio in the targets of the values, the paper's
            `rho`; None does not clip.
          clip_pg_rho: The largest ratio in the advantages; None does not clip.
          collect_update_period: The number of calls of `train` between updates of
            `collect_policy`. If it is more than 1, this policy acts with a copy of the
            actor's weights, like an actor in another process that fetches weights after
            that many updates.
          **settings: Fields of `OnPolicyOptions` and `AgentOptions`. Here
            `entropy_regularization` is 0.01 by default, `lambda_value` is the lambda of
            V-trace, and the critic's squared error has no factor of a half.

        Raises:
          ValueError: See `PPOAgent`.
          TypeError: See `PPOAgent`.
        """
        for argument, value in (
            ("max_abs_reward", max_abs_reward),
            ("clip_rho", clip_rho),
            ("clip_pg_rho", clip_pg_rho),
        ):
            if value is not None:
                number_checks.check_number(
                    argument,
                    value,
                    0.0,
                    excludes_low=True,
                    remedy="give a positive number, or None for no limit",
                )
        number_checks.check_integer(
            "collect_update_period",
            collect_update_period,
            1,
            remedy="1 collects with the current weights",
        )
        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            actor_net,
            value_net,
            *options.from_settings(
                type(self),
                settings,
                (on_policy_options.OnPolicyOptions, options.AgentOptions),
                entropy_regularization=0.01,
            ),
            collect_update_period=collect_update_period,
            records_policy_state=True,
        )
        self._max_abs_reward = max_abs_reward
        self._clip_rho, self._clip_pg_rho = clip_rho, clip_pg_rho

    def compute_return_and_advantage(
        self,
        next_time_steps: ts.TimeStep,
        value_preds: tf.Tensor,
        log_rhos: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the targets of the values and the advantages, each `[B, T]`.

        Args:
          next_time_steps: See `OnPolicyAgent.compute_return_and_advantage`.
          value_preds: See `OnPolicyAgent.compute_return_and_advantage`.
          log_rhos: The logarithms of the actions' ratios, `[B, T]`; None for actions of
            the current policy.
        """
        values = tf.transpose(value_preds)
        rewards = tf.transpose(tf.cast(next_time_steps.reward, values.dtype))
        if self._max_abs_reward is not None:
            limit = self._max_abs_reward
            rewards = tf.clip_by_value(rewards, -limit, limit)
        targets = losses.vtrace(
            v_tm1=values[:-1],
            r_t=rewards,
            discount_t=self._advantage_estimator.discount_factor
            * tf.transpose(next_time_steps.discount),
            v_t=values[1:],
            log_rhos=tf.zeros_like(rewards)
            if log_rhos is None
            else tf.transpose(log_rhos),
            lambda_=self._advantage_estimator.lambda_,
            clip_rho=self._clip_rho,
            clip_pg_rho=self._clip_pg_rho,
            continues_t=tf.transpose(next_time_steps.is_mid()),
        )
        return tf.transpose(targets.vs), tf.transpose(targets.pg_advantages)

    def _prepare(
        self, experience: Any, weights: tf.Tensor | None = None, policy_state: Any = ()
    ) -> training_data.TrainingData:
        info = self._as_training_data(experience).policy_info
        if not tf.nest.flatten(policy_state):
            policy_state = transitions.first_state(info, self._networks.state_spec)
        return super()._prepare(experience, weights, policy_state)

    def _estimate(
        self,
        frames: trajectory.Trajectory,
        next_time_steps: ts.TimeStep,
        values: tf.Tensor,
        policy_state: Any,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        old = self._networks.recorded(frames.policy_info["dist_params"])
        current = self._networks.distribution(
            training_data.time_steps_of(frames), policy_state
        )
        log_rhos = self._log_probs(current, frames.action) - self._log_probs(
            old, frames.action
        )
        # The frames between episodes have no action.
        valid = training_data.make_trajectory_mask(frames)
        log_rhos = training_data.masked(log_rhos, valid)
        return self.compute_return_and_advantage(next_time_steps, values, log_rhos)

    def _losses(
        self, data: training_data.TrainingData, training: bool
    ) -> tf_agent.LossInfo:
        distribution, values = self._outputs(data, training)
        parts = self._policy_gradient_parts(distribution, values, data)
        log_ratio = self._log_probs(distribution, data.actions) - data.old_log_probs
        measures = {
            "explained_variance": losses.explained_variance(
                data.old_values, data.returns, data.valid
            ),
            "approx_kl": losses.masked_mean(losses.approx_kl(log_ratio), data.valid),
        }
        return tf_agent.LossInfo(
            tf.add_n(list(parts.values())), ImpalaLossInfo(**parts, **measures)
        )


def split_network(
    network: types.Network,
    observation_spec: types.NestedTensorSpec,
    action_spec: tf.TypeSpec,
) -> tuple[network_lib.Network, network_lib.Network]:
    """Returns the actor and the value network of an agent, which share all weights.

    Args:
      network: A `Network`, or a Keras layer or model, that maps observations to
        `(logits, value)`, of shapes `[B, num_actions]` and `[B]`, such as a
        `Sequential([..., PolicyValueHead(num_actions)])`. If it is recurrent, both
        networks keep its state.
      observation_spec: The nest of specs of the observations.
      action_spec: The spec of the action, an integer whose lowest value is 0.
    """
    dtype = action_spec.dtype
    network = network_lib.as_network(network, observation_spec)

    def to_distribution(output: tuple[tf.Tensor, tf.Tensor]) -> Any:
        return tfp.distributions.Categorical(logits=output[0], dtype=dtype)

    def to_value(output: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return output[1]

    return (
        sequential.Sequential([network, to_distribution], observation_spec),
        sequential.Sequential([network, to_value], observation_spec),
    )
