"""Advantage actor-critic, in its synchronous form.

From a few steps of many environments, one update minimises

    -A log pi(a|s) + c_V (V(s) - G)^2 - c_H H(pi(.|s)).

Mnih et al., "Asynchronous methods for deep reinforcement learning" (2016,
arXiv:1602.01783), algorithm S3, without the asynchronous actors. This is PPO's first
update on the same data, where all ratios are 1.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.on_policy import A2CAgent
>>> from tfrl.agents.ppo import ppo_networks
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> actor_net, value_net = ppo_networks.create_networks(observation_spec, action_spec)
>>> agent = A2CAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     keras.optimizers.Adam(1e-3),
...     actor_net,
...     value_net,
... )
>>> agent.num_epochs
1
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import options, tf_agent
from tfrl.agents.on_policy import on_policy_agent, on_policy_options, training_data
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class A2CLossInfo(NamedTuple):
    """The parts of the loss, and the explained variance.

    The loss is the sum of the parts and of the networks' own regularisation losses.

    Attributes:
      policy_gradient_loss: The loss of the policy.
      value_estimation_loss: The critic's loss, times its weight.
      entropy_regularization_loss: Minus the entropy, times its weight.
      explained_variance: The share of the returns' variance that the values explain.
    """

    policy_gradient_loss: Any
    value_estimation_loss: Any
    entropy_regularization_loss: Any
    explained_variance: Any


class A2CAgent(on_policy_agent.OnPolicyAgent):
    """An A2C agent, with the defaults of Stable-Baselines3.

    `train` takes frames `[B, T + 1]`, such as 6 of each of 16 environments, and does
    one update. Policies, ways to train and options are as in `PPOAgent`.
    """

    _info = A2CLossInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        *,
        compute_value_and_advantage_in_train: bool = True,
        normalize_advantages: bool = False,
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
          compute_value_and_advantage_in_train: See `PPOAgent`.
          normalize_advantages: See `PPOAgent`.
          **settings: Fields of `OnPolicyOptions` and `AgentOptions`. Here
            `gradient_clipping` is 0.5 by default.

        Raises:
          ValueError: See `PPOAgent`.
          TypeError: See `PPOAgent`.
        """
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
                gradient_clipping=0.5,
            ),
            compute_value_and_advantage_in_train=compute_value_and_advantage_in_train,
            normalize_advantages=normalize_advantages,
        )

    def _losses(
        self, data: training_data.TrainingData, training: bool
    ) -> tf_agent.LossInfo:
        distribution, values = self._outputs(data, training)
        parts = self._policy_gradient_parts(distribution, values, data)
        explained = losses.explained_variance(data.old_values, data.returns, data.valid)
        return tf_agent.LossInfo(
            tf.add_n(list(parts.values())),
            A2CLossInfo(**parts, explained_variance=explained),
        )
