"""Proximal Policy Optimization with the clipped objective alone."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.agents.ppo import ppo_agent
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
        importance_ratio_clipping: types.FloatOrSchedule = 0.0,
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
        value_clipping: types.FloatOrSchedule | None = None,
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
        """Builds a `PPOAgent`; see its constructor for the arguments.

        Args:
          **kwargs: The keyword-only arguments of `PPOAgent`.
        """
        super().__init__(
            time_step_spec=time_step_spec,
            action_spec=action_spec,
            optimizer=optimizer,
            actor_net=actor_net,
            value_net=value_net,
            greedy_eval=greedy_eval,
            importance_ratio_clipping=importance_ratio_clipping,
            lambda_value=lambda_value,
            discount_factor=discount_factor,
            entropy_regularization=entropy_regularization,
            policy_l2_reg=policy_l2_reg,
            value_function_l2_reg=value_function_l2_reg,
            shared_vars_l2_reg=shared_vars_l2_reg,
            value_pred_loss_coef=value_pred_loss_coef,
            num_epochs=num_epochs,
            use_gae=use_gae,
            use_td_lambda_return=use_td_lambda_return,
            normalize_rewards=normalize_rewards,
            reward_norm_clipping=reward_norm_clipping,
            normalize_observations=normalize_observations,
            log_prob_clipping=log_prob_clipping,
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
            kl_cutoff_factor=0.0,
            kl_cutoff_coef=0.0,
            initial_adaptive_kl_beta=0.0,
            adaptive_kl_target=0.0,
            adaptive_kl_tolerance=0.0,
            **kwargs,
        )
