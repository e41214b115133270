"""Proximal Policy Optimization with the clipped objective alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents.ppo import ppo_agent

if TYPE_CHECKING:
    from tfrl.trajectories import time_step as ts
    from tfrl.typing import types


class PPOClipAgent(ppo_agent.PPOAgent):
    """A `PPOAgent` without penalties on the KL divergence.

    With TF-Agents' default of 0, `importance_ratio_clipping` does not clip; 0.2 is
    usual.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None = None,
        actor_net: types.Network | types.Layer | None = None,
        value_net: types.Network | types.Layer | None = None,
        greedy_eval: bool = True,
        importance_ratio_clipping: Any = 0.0,
        lambda_value: float = 0.95,
        discount_factor: float = 0.99,
        entropy_regularization: float = 0.0,
        policy_l2_reg: float = 0.0,
        value_function_l2_reg: float = 0.0,
        shared_vars_l2_reg: float = 0.0,
        value_pred_loss_coef: float = 0.5,
        num_epochs: int = 25,
        use_gae: bool = False,
        use_td_lambda_return: bool = False,
        normalize_rewards: bool = True,
        reward_norm_clipping: float = 10.0,
        normalize_observations: bool = True,
        log_prob_clipping: float = 0.0,
        gradient_clipping: float | None = None,
        value_clipping: Any = None,
        check_numerics: bool = False,
        compute_value_and_advantage_in_train: bool = True,
        update_normalizers_in_train: bool = True,
        aggregate_losses_across_replicas: bool = True,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Builds a `PPOAgent`.

        Args:
          time_step_spec: See `PPOAgent`, for this and all other arguments.
          action_spec: A nest of bounded specs.
          optimizer: The optimizer of both networks.
          actor_net: Maps observations to distributions of actions.
          value_net: Maps observations to values.
          greedy_eval: Whether `policy` takes the mode of the distribution.
          importance_ratio_clipping: The range of the clipped objective.
          lambda_value: The lambda of generalized advantage estimation.
          discount_factor: The discount factor.
          entropy_regularization: The weight of the entropy bonus.
          policy_l2_reg: The weight of the squares of the actor's kernels.
          value_function_l2_reg: The weight of the squares of the critic's kernels.
          shared_vars_l2_reg: The weight of the squares of kernels of both networks.
          value_pred_loss_coef: The weight of the critic's squared error.
          num_epochs: The number of updates in one call of `train`.
          use_gae: Whether to use generalized advantage estimation.
          use_td_lambda_return: Whether the critic learns TD(lambda) returns.
          normalize_rewards: Whether to normalize rewards.
          reward_norm_clipping: The largest normalized reward.
          normalize_observations: Whether to normalize observations.
          log_prob_clipping: The largest size of a log-probability.
          gradient_clipping: The largest norm of all gradients together.
          value_clipping: The range of the critic's clipped loss.
          check_numerics: Has no effect.
          compute_value_and_advantage_in_train: Whether `train` computes advantages.
          update_normalizers_in_train: Whether `train` updates the normalizers.
          aggregate_losses_across_replicas: Whether losses are divided by the number of
            replicas.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          **kwargs: The keyword-only arguments of `PPOAgent`.
        """
        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            actor_net,
            value_net,
            greedy_eval,
            importance_ratio_clipping,
            lambda_value,
            discount_factor,
            entropy_regularization,
            policy_l2_reg,
            value_function_l2_reg,
            shared_vars_l2_reg,
            value_pred_loss_coef,
            num_epochs,
            use_gae,
            use_td_lambda_return,
            normalize_rewards,
            reward_norm_clipping,
            normalize_observations,
            log_prob_clipping,
            kl_cutoff_factor=0.0,
            kl_cutoff_coef=0.0,
            initial_adaptive_kl_beta=0.0,
            adaptive_kl_target=0.0,
            adaptive_kl_tolerance=0.0,
            gradient_clipping=gradient_clipping,
            value_clipping=value_clipping,
            check_numerics=check_numerics,
            compute_value_and_advantage_in_train=compute_value_and_advantage_in_train,
            update_normalizers_in_train=update_normalizers_in_train,
            aggregate_losses_across_replicas=aggregate_losses_across_replicas,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            **kwargs,
        )
