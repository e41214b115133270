"""Advantage actor-critic, in its synchronous form.

From a few steps of many environments, one update minimises

    -A log pi(a|s) + c_V (V(s) - G)^2 - c_H H(pi(.|s)).

Mnih et al., "Asynchronous methods for deep reinforcement learning" (2016,
arXiv:1602.01783), algorithm S3, without the asynchronous actors. It is the first update
of PPO on its data, where all ratios are 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import on_policy_agent, tf_agent
from tfrl.agents.on_policy import advantages as advantages_lib
from tfrl.agents.on_policy import construction, training_data

if TYPE_CHECKING:
    from tfrl.trajectories import time_step as ts
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class A2CLossInfo(NamedTuple):
    """The parts of the loss, which add up to it, and a measure of the critic.

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
    one update. The policies, the ways to train and all options are those of `PPOAgent`.
    """

    _loss_info_type = A2CLossInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        greedy_eval: bool = True,
        lambda_value: float = 1.0,
        discount_factor: float = 0.99,
        entropy_regularization: float = 0.0,
        value_pred_loss_coef: float = 0.5,
        gradient_clipping: float | None = 0.5,
        compute_value_and_advantage_in_train: bool = True,
        update_normalizers_in_train: bool = True,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        normalize_advantages: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the policies and the optimizer's variables.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          optimizer: The optimizer of both networks; None for an agent that never
            trains.
          actor_net: See `PPOAgent`.
          value_net: See `PPOAgent`.
          greedy_eval: Whether `policy` takes the mode of the distribution; if not, it
            samples.
          lambda_value: The lambda of generalized advantage estimation; 1 takes all
            rewards up to the end of the data.
          discount_factor: The discount factor.
          entropy_regularization: The weight of the entropy bonus.
          value_pred_loss_coef: The weight of the critic's squared error.
          gradient_clipping: The largest norm of all gradients together.
          compute_value_and_advantage_in_train: See `PPOAgent`.
          update_normalizers_in_train: See `PPOAgent`.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          normalize_advantages: See `PPOAgent`.
          observation_and_action_constraint_splitter: See `PPOAgent`.
          seed: Seed of the policies' own random numbers, for calls without a seed.
          observation_normalizer: Normalizes the observations that the networks see.
          reward_normalizer: Normalizes the rewards that returns are computed from.

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
            greedy_eval=greedy_eval,
            advantage_estimator=advantages_lib.AdvantageEstimator(
                discount_factor, lambda_value
            ),
            loss_weights=construction.LossWeights(
                value_pred_loss_coef, entropy_regularization
            ),
            num_epochs=1,
            normalize_advantages=normalize_advantages,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
            gradient_clipping=gradient_clipping,
            compute_value_and_advantage_in_train=compute_value_and_advantage_in_train,
            update_normalizers_in_train=update_normalizers_in_train,
            aggregate_losses_across_replicas=True,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            seed=seed,
        )

    def _losses(
        self, data: training_data.TrainingData, training: bool
    ) -> tf_agent.LossInfo:
        distribution = self._distribution(data, training)
        parts = self._policy_gradient_parts(distribution, data, training)
        explained = losses.explained_variance(data.old_values, data.returns, data.valid)
        return tf_agent.LossInfo(
            tf.add_n(list(parts.values())),
            A2CLossInfo(**parts, explained_variance=explained),
        )
