"""Proximal Policy Optimization with a penalty on the KL divergence."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.agents.ppo import ppo_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class PPOKLPenaltyAgent(ppo_agent.PPOAgent):
    """A `PPOAgent` whose objective is not clipped, only penalised.

    The order of the arguments and the defaults are TF-Agents'. They differ from
    `PPOAgent`'s.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        num_epochs: int,
        initial_adaptive_kl_beta: float,
        adaptive_kl_target: float,
        adaptive_kl_tolerance: float,
        optimizer: types.Optimizer | None = None,
        use_gae: bool = True,
        use_td_lambda_return: bool = True,
        lambda_value: float = 0.95,
        discount_factor: float = 0.99,
        value_pred_loss_coef: float = 0.5,
        entropy_regularization: float = 0.0,
        policy_l2_reg: float = 0.0,
        value_function_l2_reg: float = 0.0,
        shared_vars_l2_reg: float = 0.0,
        normalize_observations: bool = False,
        normalize_rewards: bool = True,
        reward_norm_clipping: float = 0.0,
        log_prob_clipping: float = 0.0,
        gradient_clipping: float | None = None,
        value_clipping: types.FloatOrSchedule | None = None,
        kl_cutoff_coef: float = 0.0,
        kl_cutoff_factor: float | None = None,
        check_numerics: bool = False,
        debug_summaries: bool = False,
        compute_value_and_advantage_in_train: bool = True,
        update_normalizers_in_train: bool = True,
        aggregate_losses_across_replicas: bool = True,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Builds a `PPOAgent`; see its constructor for the arguments.

        Usual values are an `initial_adaptive_kl_beta` of 1, an `adaptive_kl_target` of
        0.01 and an `adaptive_kl_tolerance` of 0.3.

        Args:
          kl_cutoff_factor: Needed with `kl_cutoff_coef`.
          **kwargs: The keyword-only arguments of `PPOAgent`, and `greedy_eval`.

        Raises:
          ValueError: `kl_cutoff_coef` is given without `kl_cutoff_factor`.
        """
        if kl_cutoff_coef > 0 and kl_cutoff_factor is None:
            raise ValueError(
                f"kl_cutoff_factor: got None with kl_cutoff_coef={kl_cutoff_coef}, "
                "expected the factor of adaptive_kl_target from which on there is a "
                "penalty; 2.0 is usual."
            )
        super().__init__(
            time_step_spec=time_step_spec,
            action_spec=action_spec,
            actor_net=actor_net,
            value_net=value_net,
            num_epochs=num_epochs,
            initial_adaptive_kl_beta=initial_adaptive_kl_beta,
            adaptive_kl_target=adaptive_kl_target,
            adaptive_kl_tolerance=adaptive_kl_tolerance,
            optimizer=optimizer,
            use_gae=use_gae,
            use_td_lambda_return=use_td_lambda_return,
            lambda_value=lambda_value,
            discount_factor=discount_factor,
            value_pred_loss_coef=value_pred_loss_coef,
            entropy_regularization=entropy_regularization,
            policy_l2_reg=policy_l2_reg,
            value_function_l2_reg=value_function_l2_reg,
            shared_vars_l2_reg=shared_vars_l2_reg,
            normalize_observations=normalize_observations,
            normalize_rewards=normalize_rewards,
            reward_norm_clipping=reward_norm_clipping,
            log_prob_clipping=log_prob_clipping,
            gradient_clipping=gradient_clipping,
            value_clipping=value_clipping,
            kl_cutoff_coef=kl_cutoff_coef,
            kl_cutoff_factor=kl_cutoff_factor or 0.0,
            check_numerics=check_numerics,
            debug_summaries=debug_summaries,
            compute_value_and_advantage_in_train=compute_value_and_advantage_in_train,
            update_normalizers_in_train=update_normalizers_in_train,
            aggregate_losses_across_replicas=aggregate_losses_across_replicas,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            importance_ratio_clipping=0.0,
            **kwargs,
        )
