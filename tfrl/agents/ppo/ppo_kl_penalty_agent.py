"""Proximal Policy Optimization with a penalty on the KL divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents.ppo import ppo_agent

if TYPE_CHECKING:
    from tfrl.trajectories import time_step as ts
    from tfrl.typing import types


class PPOKLPenaltyAgent(ppo_agent.PPOAgent):
    """A `PPOAgent` whose objective is not clipped, only penalised.

    The order of the arguments and the defaults are TF-Agents'. They differ from those
    of `PPOAgent`.
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
        value_clipping: Any = None,
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
        """Builds a `PPOAgent`.

        Args:
          time_step_spec: See `PPOAgent`, for this and all other arguments.
          action_spec: A nest of bounded specs.
          actor_net: Maps observations to distributions of actions.
          value_net: Maps observations to values.
          num_epochs: The number of updates in one call of `train`.
          initial_adaptive_kl_beta: The first weight of the penalty, such as 1.
          adaptive_kl_target: The KL divergence to reach, such as 0.01.
          adaptive_kl_tolerance: The tolerance of the target, such as 0.3.
          optimizer: The optimizer of both networks.
          use_gae: Whether to use generalized advantage estimation.
          use_td_lambda_return: Whether the critic learns TD(lambda) returns.
          lambda_value: The lambda of generalized advantage estimation.
          discount_factor: The discount factor.
          value_pred_loss_coef: The weight of the critic's squared error.
          entropy_regularization: The weight of the entropy bonus.
          policy_l2_reg: The weight of the squares of the actor's kernels.
          value_function_l2_reg: The weight of the squares of the critic's kernels.
          shared_vars_l2_reg: The weight of the squares of kernels of both networks.
          normalize_observations: Whether to normalize observations.
          normalize_rewards: Whether to normalize rewards.
          reward_norm_clipping: The largest normalized reward.
          log_prob_clipping: The largest size of a log-probability.
          gradient_clipping: The largest norm of all gradients together.
          value_clipping: The range of the critic's clipped loss.
          kl_cutoff_coef: The weight of the penalty from a cutoff on.
          kl_cutoff_factor: The factor of the target where the cutoff is; needed with
            `kl_cutoff_coef`.
          check_numerics: Has no effect.
          debug_summaries: See `TFAgent`.
          compute_value_and_advantage_in_train: Whether `train` computes advantages.
          update_normalizers_in_train: Whether `train` updates the normalizers.
          aggregate_losses_across_replicas: Whether losses are divided by the number of
            replicas.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          **kwargs: The keyword-only arguments of `PPOAgent`, and `greedy_eval`.

        Raises:
          ValueError: There is a weight of the cutoff's penalty, but no factor.
        """
        if kl_cutoff_coef > 0 and kl_cutoff_factor is None:
            raise ValueError(
                f"kl_cutoff_factor: got None with kl_cutoff_coef={kl_cutoff_coef}, "
                "expected the factor of adaptive_kl_target from which on there is a "
                "penalty; 2.0 is usual."
            )
        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            actor_net,
            value_net,
            importance_ratio_clipping=0.0,
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
            kl_cutoff_factor=kl_cutoff_factor or 0.0,
            kl_cutoff_coef=kl_cutoff_coef,
            initial_adaptive_kl_beta=initial_adaptive_kl_beta,
            adaptive_kl_target=adaptive_kl_target,
            adaptive_kl_tolerance=adaptive_kl_tolerance,
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
