"""Proximal Policy Optimization, with a clipped objective, a KL penalty or both.

With ratios rho = pi(a|s) / pi_old(a|s) to the policy that collected the data and
advantages A, an update minimises

    -min(rho A, clip(rho, 1 - epsilon, 1 + epsilon) A)
    + beta KL(pi_old || pi) + c max(0, KL(pi_old || pi) - cutoff)^2
    + c_V (V(s) - G)^2 - c_H H(pi(.|s)),

averaged over the data, where beta follows the divergence. Schulman et al., "Proximal
policy optimization algorithms" (2017, arXiv:1707.06347), equations 7 to 9. The
advantages come from Schulman et al., "High-dimensional continuous control using
generalized advantage estimation" (2016, arXiv:1506.02438), or are discounted returns
minus values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, options, tf_agent
from tfrl.agents.on_policy import (
    distribution_params,
    on_policy_agent,
    on_policy_options,
    training_data,
)
from tfrl.agents.ppo import rnd as rnd_lib
from tfrl.agents.ppo import rpo
from tfrl.compilation import replicas
from tfrl.policies import tf_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import number_checks, variables
from tfrl.utils.optimization import schedules
from tfrl.utils.random_numbers import seeds
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer, TensorNormalizer


class PPOLossInfo(NamedTuple):
    """The parts of the loss, and measures of the update.

    The loss is the sum of the parts and of the networks' own regularisation losses.

    Attributes:
      policy_gradient_loss: The loss of the policy.
      value_estimation_loss: The critic's loss, times its weight.
      l2_regularization_loss: The penalty of large weights that the agent's own
        coefficients give.
      entropy_regularization_loss: Minus the entropy, times its weight.
      kl_penalty_loss: The penalty of the KL divergence.
      clip_fraction: The share of steps whose ratio is clipped.
      approx_kl: An estimate of the KL divergence from the actions that were taken.
      explained_variance: The share of the returns' variance that is explained by the
        values from which the returns were computed.
      distillation_loss: The loss of `rnd`'s predictor, which is part of the sum; 0
        without one.
    """

    policy_gradient_loss: Any
    value_estimation_loss: Any
    l2_regularization_loss: Any
    entropy_regularization_loss: Any
    kl_penalty_loss: Any
    clip_fraction: Any
    approx_kl: Any = ()
    explained_variance: Any = ()
    distillation_loss: Any = ()


class PPOAgent(on_policy_agent.OnPolicyAgent):
    """A PPO agent; `PPOClipAgent` and `PPOKLPenaltyAgent` are special cases.

    There are two ways to train it:

    - In minibatches, as `train.OnPolicyLoop` does: make it with `num_epochs=1`,
      `compute_value_and_advantage_in_train=False` and
      `update_normalizers_in_train=False`. Give collected frames `[B, T + 1]` to
      `preprocess_sequence`, any parts of the result to `train` as often as you like,
      and finally the frames to `update_normalizers`.
    - On all data at once: `train` takes collected frames `[B, T + 1]` and does all of
      this.

    The defaults are TF-Agents', which do not clip; an `importance_ratio_clipping` of
    0.2 is usual.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "compute_advantages": "override compute_return_and_advantage",
        "get_loss": "override _losses(data, training)",
        "adaptive_kl_loss": "override kl_penalty_loss(dist_params, distribution, ...)",
        "kl_cutoff_loss": "override kl_penalty_loss(dist_params, distribution, ...)",
    }

    _hook_keywords: ClassVar[Mapping[str, Sequence[str]]] = {
        "policy_gradient_loss": ("log_ratio", "advantages", "weights"),
        "value_estimation_loss": (
            "values",
            "returns",
            "weights",
            "old_value_predictions",
            "value_clipping",
        ),
        "kl_penalty_loss": ("dist_params", "distribution", "weights"),
    }

    _info = PPOLossInfo

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
        kl_cutoff_factor: float = 2.0,
        kl_cutoff_coef: float = 1000.0,
        initial_adaptive_kl_beta: float = 1.0,
        adaptive_kl_target: float = 0.01,
        adaptive_kl_tolerance: float = 0.3,
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
        *,
        normalize_advantages: bool = True,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        exploration: Callable[[tf_policy.TFPolicy], tf_policy.TFPolicy] | None = None,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        rpo_alpha: float = 0.0,
        rnd: rnd_lib.RandomNetworkDistillation | None = None,
    ) -> None:
        """Builds the policies, the normalizers and the optimizer's variables.

        `OnPolicyOptions` and `AgentOptions` explain the arguments that are not listed
        here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          optimizer: The optimizer of both networks; None for an agent that never
            trains.
          actor_net: A `Network` (or Keras layer) that maps observations to a nest of
            distributions like `action_spec`.
          value_net: A `Network` (or Keras layer) that maps observations to values
            `[B]`. It may share layers with the actor; an update computes them once if
            both networks are `Sequential`s that begin with these layers.
          importance_ratio_clipping: The range `epsilon` of the clipped objective, such
            as 0.2: a number, or a schedule as in `utils.optimization.schedules`;
            Keras schedules follow the train step. 0 does not clip.
          policy_l2_reg: The weight of the squares of the actor's kernels.
          value_function_l2_reg: The weight of the squares of the critic's kernels.
          shared_vars_l2_reg: The weight of the squares of kernels of both networks.
          num_epochs: The number of updates in one call of `train`.
          use_gae: Whether to use generalized advantage estimation; if not, advantages
            are discounted returns minus values.
          use_td_lambda_return: Whether the critic learns TD(lambda) returns instead of
            discounted returns. It has an effect with `use_gae` only.
          normalize_rewards: Whether to divide rewards by their running standard
            deviation. A `reward_normalizer` replaces this normalizer.
          reward_norm_clipping: The largest normalized reward; 0 does not clip.
          normalize_observations: Whether to normalize observations by their running
            mean and variance. An `observation_normalizer` replaces this normalizer.
          log_prob_clipping: The largest absolute value of a log-probability; 0 does not
            clip.
          kl_cutoff_factor: A KL divergence above `kl_cutoff_factor *
            adaptive_kl_target` is penalised; 0 gives no such penalty.
          kl_cutoff_coef: The weight of this penalty.
          initial_adaptive_kl_beta: The first weight of the adaptive penalty on the KL
            divergence; 0 gives no such penalty.
          adaptive_kl_target: The divergence to which the weight is adapted.
          adaptive_kl_tolerance: The tolerance of the target, as a fraction of the
            target.
          value_clipping: The range around the value predicted before training. Outside
            of this range the critic's loss is clipped. It takes the same kinds of
            values as `importance_ratio_clipping`; None or 0 does not clip.
          check_numerics: Has no effect: losses and gradients are always checked.
          compute_value_and_advantage_in_train: Whether `train` computes values and
            advantages. If not, `preprocess_sequence` computes them, which minibatches
            need.
          aggregate_losses_across_replicas: Has no effect: the gradients of replicas of
            a `tf.distribute.Strategy` are averaged.
          normalize_advantages: Whether to normalize the advantages of one call of
            `train` to mean 0 and standard deviation 1.
          rpo_alpha: The largest size of the noise on the means of normal distributions
            in updates, in units of half of each action's range; 0 for none. See
            `agents.ppo.rpo`.
          rnd: Gives intrinsic rewards for observations that were rarely seen, in
            addition to the environment's, or None; see `agents.ppo.rnd`. Its predictor
            is trained by the same optimizer.

        Raises:
          ValueError: The reward is not one scalar, a network's output does not match,
            the distributions have no entropy in closed form for an entropy bonus or
            are not normal with `rpo_alpha`, or a number is out of range.
          TypeError: A network is missing, or a normalizer is of another kind.
        """
        del check_numerics, aggregate_losses_across_replicas
        _check_ranges(
            importance_ratio_clipping=importance_ratio_clipping,
            value_clipping=0.0 if value_clipping is None else value_clipping,
            log_prob_clipping=log_prob_clipping,
            kl_cutoff_factor=kl_cutoff_factor,
            kl_cutoff_coef=kl_cutoff_coef,
            initial_adaptive_kl_beta=initial_adaptive_kl_beta,
            adaptive_kl_target=adaptive_kl_target,
            adaptive_kl_tolerance=adaptive_kl_tolerance,
            rpo_alpha=rpo_alpha,
        )
        on_policy_options.check_weights(
            policy_l2_reg=policy_l2_reg,
            value_function_l2_reg=value_function_l2_reg,
            shared_vars_l2_reg=shared_vars_l2_reg,
        )
        if use_td_lambda_return and not use_gae:
            checks.warn_user(
                "use_td_lambda_return: got True with use_gae=False, so the critic "
                "learns discounted returns; give use_gae=True for TD(lambda) returns."
            )
        if observation_normalizer is None and normalize_observations:
            observation_normalizer = _streaming_normalizer(
                time_step_spec, observation_and_action_constraint_splitter
            )
        if reward_normalizer is None and normalize_rewards:
            reward_normalizer = RewardNormalizer(
                batch_size=None, gamma=0.0, clip_value=reward_norm_clipping
            )
        super().__init__(
            time_step_spec,
            action_spec,
            optimizer,
            actor_net,
            value_net,
            on_policy_options.OnPolicyOptions(
                greedy_eval=greedy_eval,
                lambda_value=lambda_value,
                discount_factor=discount_factor,
                entropy_regularization=entropy_regularization,
                value_pred_loss_coef=value_pred_loss_coef,
                gradient_clipping=gradient_clipping,
                update_normalizers_in_train=update_normalizers_in_train,
                observation_and_action_constraint_splitter=(
                    observation_and_action_constraint_splitter
                ),
                exploration=exploration,
            ),
            options.AgentOptions(
                debug_summaries=debug_summaries,
                summarize_grads_and_vars=summarize_grads_and_vars,
                train_step_counter=train_step_counter,
                name=name,
                seed=seed,
                observation_normalizer=observation_normalizer,
                reward_normalizer=reward_normalizer,
            ),
            use_gae=use_gae,
            use_td_lambda_return=use_td_lambda_return,
            num_epochs=num_epochs,
            normalize_advantages=normalize_advantages,
            compute_value_and_advantage_in_train=compute_value_and_advantage_in_train,
            also_trained=[] if rnd is None else [rnd.predictor],
        )
        self._rnd = rnd
        self._l2_weights = policy_l2_reg, value_function_l2_reg, shared_vars_l2_reg
        self._importance_ratio_clipping = _range(
            "importance_ratio_clipping",
            importance_ratio_clipping,
            self.train_step_counter,
        )
        self._value_clipping = _range(
            "value_clipping", value_clipping, self.train_step_counter
        )
        self._log_prob_clipping = log_prob_clipping
        self._kl_cutoff = kl_cutoff_factor * adaptive_kl_target
        self._kl_cutoff_coef = kl_cutoff_coef
        self._kl_target = adaptive_kl_target
        self._kl_tolerance = adaptive_kl_tolerance
        self._rpo_alpha = rpo_alpha
        if rpo_alpha:
            rpo.check(self._networks.actor_net.create_variables(), self.action_spec)
            self._seed = tf.Variable(
                seeds.draw_number() if seed is None else seed,
                dtype=tf.int64,
                trainable=False,
                name="seed",
            )
        self._adaptive_kl_beta = None
        if initial_adaptive_kl_beta:
            self._adaptive_kl_beta = tf.Variable(
                initial_adaptive_kl_beta,
                trainable=False,
                dtype=tf.float32,
                name="adaptive_kl_beta",
            )

    @property
    def adaptive_kl_beta(self) -> tf.Variable | None:
        """The weight of the adaptive penalty on the KL divergence, or None."""
        return self._adaptive_kl_beta

    def _losses(
        self, data: training_data.TrainingData, training: bool
    ) -> tf_agent.LossInfo:
        distribution, values = self._outputs(data, training)
        seen = data
        if training and self._rpo_alpha:
            seen = data._replace(actions=self._perturbed(data.actions))
        log_ratio = self._log_ratio(distribution, seen)
        parts = {
            "policy_gradient_loss": self.policy_gradient_loss(
                log_ratio=log_ratio, advantages=data.advantages, weights=data.weights
            ),
            "value_estimation_loss": self.value_estimation_loss(
                values=values,
                returns=data.returns,
                weights=data.weights,
                old_value_predictions=data.old_values,
                value_clipping=_current(self._value_clipping),
            ),
            "l2_regularization_loss": self.l2_regularization_loss(),
            "entropy_regularization_loss": self.entropy_regularization_loss(
                distribution=distribution, weights=data.weights
            ),
            "kl_penalty_loss": self.kl_penalty_loss(
                dist_params=data.dist_params,
                distribution=distribution,
                weights=data.weights,
            ),
            "distillation_loss": self._distillation_loss(data),
        }
        measures = {
            **self._measures_of_ratio(log_ratio, data),
            "explained_variance": losses.explained_variance(
                data.old_values, data.returns, data.valid
            ),
        }
        total = tf.add_n(list(parts.values()))
        return tf_agent.LossInfo(total, PPOLossInfo(**parts, **measures))

    def _with_advantages(
        self, frames: trajectory.Trajectory, policy_state: Any
    ) -> trajectory.Trajectory:
        if self._rnd is not None:
            bonus = self._rnd.rewards(frames.observation)
            frames = frames._replace(reward=frames.reward + bonus)
        return super()._with_advantages(frames, policy_state)

    def update_normalizers(self, frames: trajectory.Trajectory) -> None:
        """Adds frames to all statistics; see `TFAgent.update_normalizers`."""
        super().update_normalizers(frames)
        if self._rnd is not None:
            self._rnd.update(frames)

    def _distillation_loss(self, data: training_data.TrainingData) -> tf.Tensor:
        """Returns the weighted mean of the predictor's errors, at boundaries, too."""
        if self._rnd is None:
            return tf.constant(0.0)
        errors = self._rnd.errors(data.time_steps.observation)
        return self._mean(errors, data.frame_weights)

    def _perturbed(self, actions: Any) -> Any:
        """Returns the actions as seen from means with new noise in each update."""
        counter = tf.cast(self.train_step_counter, tf.int64)
        own = tf.stack([tf.convert_to_tensor(self._seed), counter])
        return rpo.perturbed(actions, self.action_spec, self._rpo_alpha, own)

    def policy_gradient_loss(
        self, log_ratio: tf.Tensor, advantages: tf.Tensor, weights: tf.Tensor
    ) -> tf.Tensor:
        """Returns the weighted mean of the clipped objective, negated.

        Args:
          log_ratio: The logarithms of the importance ratios, `[B, T]`.
          advantages: `[B, T]`.
          weights: Float32 `[B, T]`.
        """
        clip_range = _current(self._importance_ratio_clipping)
        loss = losses.clipped_surrogate(log_ratio, advantages, clip_range)
        return self._mean(loss, weights)

    def l2_regularization_loss(self) -> tf.Tensor:
        """Returns the sums of the squares of kernels, times their coefficients."""
        total = tf.constant(0.0)
        kernels = _kernels(self.actor_net, self.value_net)
        for coefficient, of_network in zip(self._l2_weights, kernels, strict=True):
            if coefficient and of_network:
                squares = [tf.reduce_sum(tf.square(kernel)) for kernel in of_network]
                total += coefficient * tf.add_n(squares)
        return total

    def kl_penalty_loss(
        self,
        dist_params: types.NestedTensor,
        distribution: types.NestedDistribution,
        weights: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the sum of the adaptive and the cutoff penalty on the KL divergence.

        Args:
          dist_params: The parameters of the old distributions, `[B, T, ...]`.
          distribution: The nest of the current distributions, batch shape `[B, T]`.
          weights: Float32 `[B, T]`.
        """
        penalty = tf.constant(0.0)
        has_cutoff = self._kl_cutoff > 0 and self._kl_cutoff_coef > 0
        if self._adaptive_kl_beta is None and not has_cutoff:
            return penalty
        kl = self._kl_divergence(dist_params, distribution)
        if self._adaptive_kl_beta is not None:
            penalty += self._adaptive_kl_beta * self._mean(kl, weights)
        if has_cutoff:
            mean_kl = tf.reduce_mean(tf.math.multiply_no_nan(kl, weights))
            # The penalty is not linear, so it takes the mean divergence of all
            # replicas, with the gradient of this replica's divergence.
            own = tf.stop_gradient(mean_kl)
            penalty += losses.kl_cutoff_penalty(
                mean_kl + (replicas.mean(own) - own),
                self._kl_cutoff,
                self._kl_cutoff_coef,
            )
        return penalty

    def update_adaptive_kl_beta(self, kl_divergence: tf.Tensor) -> tf.Tensor | None:
        """Adapts the weight of the penalty to the KL divergence after an iteration.

        Args:
          kl_divergence: The KL divergences of the old and the new policy, or their
            mean.

        Returns:
          The new weight, or None without a penalty.
        """
        if self._adaptive_kl_beta is None:
            return None
        beta = losses.adapted_kl_beta(
            self._adaptive_kl_beta,
            tf.reduce_mean(kl_divergence),
            self._kl_target,
            self._kl_tolerance,
        )
        self._adaptive_kl_beta.assign(beta)
        return beta

    def end_iteration(
        self, pieces: Sequence[Any], policy_state: types.NestedTensor = ()
    ) -> None:
        """Adapts the weight of the KL penalty; see `OnPolicyAgent.end_iteration`."""
        if self._adaptive_kl_beta is not None:
            self._after_epochs(
                [self._prepare(piece, None, policy_state) for piece in pieces]
            )

    def _after_epochs(self, pieces: Sequence[training_data.TrainingData]) -> None:
        if self._adaptive_kl_beta is None:
            return
        kl = [
            self._kl_divergence(data.dist_params, self._distribution(data))
            for data in pieces
        ]
        mean_kl = losses.masked_mean(
            tf.concat([tf.reshape(values, [-1]) for values in kl], axis=0),
            tf.concat([tf.reshape(data.valid, [-1]) for data in pieces], axis=0),
            replicas.reduce_sum,
        )
        self.update_adaptive_kl_beta(mean_kl)

    def _measure_policy(
        self, data: training_data.TrainingData, distribution: Any
    ) -> dict[str, tf.Tensor]:
        numbers = super()._measure_policy(data, distribution)
        numbers |= self._measures_of_ratio(self._log_ratio(distribution, data), data)
        clip_range = _current(self._importance_ratio_clipping)
        if clip_range is not None:
            # No update has clipped to a range that has fallen to 0 at the end.
            numbers["clip_fraction"] = tf.where(
                tf.cast(clip_range, tf.float32) > 0, numbers["clip_fraction"], math.nan
            )
        if self._adaptive_kl_beta is not None:
            numbers["adaptive_kl_beta"] = self._adaptive_kl_beta.read_value()
        return numbers

    def _measures_of_ratio(
        self, log_ratio: tf.Tensor, data: training_data.TrainingData
    ) -> dict[str, tf.Tensor]:
        clip_range = _current(self._importance_ratio_clipping)
        return {
            "clip_fraction": tf.constant(0.0)
            if clip_range is None
            else losses.clip_fraction(log_ratio, clip_range, data.valid),
            "approx_kl": losses.masked_mean(losses.approx_kl(log_ratio), data.valid),
        }

    def _log_ratio(
        self, distribution: Any, data: training_data.TrainingData
    ) -> tf.Tensor:
        """Returns the logarithms of the importance ratios, 0 where not valid."""
        log_probs = self._log_probs(distribution, data.actions)
        return tf.where(data.valid, log_probs - data.old_log_probs, 0.0)

    def _log_probs(self, distribution: Any, action: Any) -> tf.Tensor:
        log_probs = super()._log_probs(distribution, action)
        limit = self._log_prob_clipping
        return tf.clip_by_value(log_probs, -limit, limit) if limit else log_probs

    def _kl_divergence(self, dist_params: Any, distribution: Any) -> tf.Tensor:
        """Returns the divergence of the old and the new policy, float32 `[B, T]`."""
        old = self._networks.recorded(dist_params)
        kl = distribution_params.nested_kl_divergence(
            old, distribution, outer_dims=(0, 1)
        )
        return tf.cast(kl, tf.float32)

    def _variables(self) -> list[tf.Variable]:
        beta = self._adaptive_kl_beta
        of_rnd = [] if self._rnd is None else variables.tracked_variables(self._rnd)
        return [*super()._variables(), *([] if beta is None else [beta]), *of_rnd]


def _range(name: str, value: Any, step: tf.Variable) -> Any:
    """Returns a number, or something that `_current` takes; None does not clip."""
    value = schedules.follow(name, value, step)
    is_off = value is None or (isinstance(value, int | float) and value == 0)
    return None if is_off else value


def _current(clip_range: Any) -> Any:
    return None if clip_range is None else schedules.current_value(clip_range)


def _check_ranges(**numbers: Any) -> None:
    for name, value in numbers.items():
        number_checks.check_number(
            name, value, 0.0, remedy="0 turns this part of the loss off"
        )


def _streaming_normalizer(
    time_step_spec: ts.TimeStep, splitter: Any
) -> StreamingTensorNormalizer:
    """Returns a normalizer of the observations that networks see, without masks."""
    checks.check_time_step_spec(time_step_spec)
    observation_spec = policy_utils.network_observation_spec(
        tensor_spec.from_spec(time_step_spec.observation), splitter
    )
    return StreamingTensorNormalizer(observation_spec, scope="normalize_observations")


def _kernels(actor_net: Any, value_net: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the kernels of the actor alone, of the critic alone, and of both."""
    of_actor, of_critic = (
        [v for v in network.trainable_variables if "kernel" in v.name]
        for network in (actor_net, value_net)
    )
    shared = variables.extract_shared_variables(of_actor, of_critic)
    is_shared = {id(v) for v in shared}
    return (
        [v for v in of_actor if id(v) not in is_shared],
        [v for v in of_critic if id(v) not in is_shared],
        shared,
    )
