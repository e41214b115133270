"""Importance weighted actor-learner architecture, the agent of it.

From sequences that a policy mu has collected, one update of the policy pi minimises

    -A log pi(a|s) + c_V (V(s) - vs)^2 - c_H H(pi(.|s))

where V-trace computes vs and A with the ratios pi / mu. Espeholt et al., "IMPALA:
Scalable distributed deep-RL with importance weighted actor-learner architectures"
(2018, arXiv:1802.01561), section 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import on_policy_agent, tf_agent
from tfrl.agents.on_policy import advantages as advantages_lib
from tfrl.agents.on_policy import construction, training_data
from tfrl.agents.ppo import ppo_policy, ppo_utils
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.trajectories import time_step as ts
    from tfrl.trajectories import trajectory
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class ImpalaLossInfo(NamedTuple):
    """The parts of the loss, which add up to it, and what says whether it works.

    Attributes:
      policy_gradient_loss: The loss of the policy.
      value_estimation_loss: The critic's loss, times its weight.
      entropy_regularization_loss: Minus the entropy, times its weight.
      explained_variance: The share of the targets' variance that the values explain.
      approx_kl: How far the policy has moved from the one that collected.
    """

    policy_gradient_loss: Any
    value_estimation_loss: Any
    entropy_regularization_loss: Any
    explained_variance: Any
    approx_kl: Any


class ImpalaAgent(on_policy_agent.OnPolicyAgent):
    """An IMPALA agent, with the defaults of Acme.

    `train` takes frames `[B, T + 1]` of any policy near the current one, such as 21 of
    each of 16 environments, and does one update. The frames hold the distributions that
    the actions were drawn from, and before each action the state of recurrent networks,
    of which `train` takes the first one. The networks forget where an episode begins
    inside of a sequence.

    Sequences may come from actors in processes of their own, whose weights are older,
    or from a loop in this process; see `collect_update_period`.
    """

    _loss_info_type = ImpalaLossInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        greedy_eval: bool = True,
        discount_factor: float = 0.99,
        lambda_value: float = 1.0,
        entropy_regularization: float = 0.01,
        value_pred_loss_coef: float = 0.5,
        max_abs_reward: float | None = None,
        gradient_clipping: float | None = None,
        clip_rho: float | None = 1.0,
        clip_pg_rho: float | None = 1.0,
        collect_update_period: int = 1,
        update_normalizers_in_train: bool = True,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
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
          discount_factor: The discount factor.
          lambda_value: The lambda of V-trace; 1 takes all rewards up to the end of the
            sequence, as far as the ratios reach.
          entropy_regularization: The weight of the entropy bonus.
          value_pred_loss_coef: The weight of the critic's squared error, which has no
            factor of a half.
          max_abs_reward: The largest size of a reward; larger ones are clipped. None
            does not clip.
          gradient_clipping: The largest norm of all gradients together; None does not
            clip.
          clip_rho: The largest ratio in the targets of the values, the paper's
            `rho`; None does not clip.
          clip_pg_rho: The largest ratio in the advantages; None does not clip.
          collect_update_period: The number of calls of `train` between updates of
            `collect_policy`. If it is more than 1, this policy acts with a copy of the
            actor, as an actor does that pulls weights so often.
          update_normalizers_in_train: See `PPOAgent`.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          observation_and_action_constraint_splitter: See `PPOAgent`.
          seed: Seed of the policies' own random numbers, for calls without a seed.
          observation_normalizer: Normalizes the observations that the networks see.
          reward_normalizer: Normalizes the rewards.

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
            greedy_eval=greedy_eval,
            advantage_estimator=advantages_lib.AdvantageEstimator(
                discount_factor, lambda_value
            ),
            loss_weights=construction.LossWeights(
                value_pred_loss_coef, entropy_regularization
            ),
            num_epochs=1,
            normalize_advantages=False,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
            gradient_clipping=gradient_clipping,
            compute_value_and_advantage_in_train=True,
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
          value_preds: See there.
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
        if ppo_policy.POLICY_STATE in info and not tf.nest.flatten(policy_state):
            policy_state = tf.nest.map_structure(
                lambda states: states[:, 0], info[ppo_policy.POLICY_STATE]
            )
        return super()._prepare(experience, weights, policy_state)

    def _estimate(
        self,
        frames: trajectory.Trajectory,
        next_time_steps: ts.TimeStep,
        values: tf.Tensor,
        policy_state: Any,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        old = ppo_utils.distribution_from_spec(
            self._distribution_spec, frames.policy_info["dist_params"]
        )
        current = self._sampling_policy.distribution(
            training_data.time_steps_of(frames), policy_state
        ).action
        log_rhos = self._log_probs(current, frames.action) - self._log_probs(
            old, frames.action
        )
        # The frames between episodes have no action.
        log_rhos = training_data.masked(
            log_rhos, ppo_utils.make_trajectory_mask(frames)
        )
        return self.compute_return_and_advantage(next_time_steps, values, log_rhos)

    def _losses(
        self, data: training_data.TrainingData, training: bool
    ) -> tf_agent.LossInfo:
        distribution = self._distribution(data, training)
        parts = self._policy_gradient_parts(distribution, data, training)
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
