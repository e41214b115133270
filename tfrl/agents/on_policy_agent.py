"""The base class of agents with an actor and a critic that learn on-policy.

They collect frames with the current policy, compute returns and advantages from them,
and minimise

    policy loss + c_V L_V(V(s), G) - c_H H(pi(.|s)) + L2 penalty

with one optimizer. `PPOAgent` and `A2CAgent` differ in the policy loss.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    data_converter,
    normalization,
    target_networks,
    tf_agent,
)
from tfrl.agents.on_policy import advantages as advantages_lib
from tfrl.agents.on_policy import construction
from tfrl.agents.on_policy import training_data as data_lib
from tfrl.agents.on_policy.training_data import TrainingData
from tfrl.agents.ppo import ppo_policy, ppo_utils
from tfrl.distributions import recorded
from tfrl.networks import network as network_lib
from tfrl.policies import greedy_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import (
    actions,
    nest_utils,
    optimizers,
    summaries,
    variables,
)

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.reward_normalizer import RewardNormalizer
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class OnPolicyAgent(tf_agent.TFAgent):
    """Base class of agents with an actor and a critic that learn on-policy.

    A subclass sets `_loss_info_type`, the named tuple of the scalars in
    `LossInfo.extra`, and writes `_losses`.
    """

    _loss_info_type: Any

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        *,
        greedy_eval: bool,
        advantage_estimator: advantages_lib.AdvantageEstimator,
        loss_weights: construction.LossWeights,
        num_epochs: int,
        normalize_advantages: bool,
        observation_normalizer: TensorNormalizer | None,
        reward_normalizer: RewardNormalizer | None,
        gradient_clipping: float | None,
        compute_value_and_advantage_in_train: bool,
        update_normalizers_in_train: bool,
        aggregate_losses_across_replicas: bool,
        debug_summaries: bool,
        summarize_grads_and_vars: bool,
        train_step_counter: tf.Variable | None,
        name: str | None,
        observation_and_action_constraint_splitter: types.Splitter | None,
        seed: int | None,
        collect_update_period: int = 1,
        records_policy_state: bool = False,
    ) -> None:
        """Builds the policies and the optimizer's variables.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          optimizer: The optimizer of both networks; None for an agent that never
            trains.
          actor_net: A `Network` (or Keras layer) that maps observations to a nest of
            distributions like `action_spec`.
          value_net: A `Network` (or Keras layer) that maps observations to values
            `[B]`. It may share layers with the actor.
          greedy_eval: Whether `policy` takes the mode of the distribution.
          advantage_estimator: Computes returns and advantages.
          loss_weights: The weights of the parts of the loss.
          num_epochs: The number of updates in one call of `train`.
          normalize_advantages: Whether to normalize the advantages of one call of
            `train` to mean 0 and standard deviation 1.
          observation_normalizer: See `PPOAgent`.
          reward_normalizer: See `PPOAgent`.
          gradient_clipping: The largest norm of all gradients together.
          compute_value_and_advantage_in_train: See `PPOAgent`.
          update_normalizers_in_train: See `PPOAgent`.
          aggregate_losses_across_replicas: See `PPOAgent`.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          name: The module's name.
          observation_and_action_constraint_splitter: See `ActorPolicy`.
          seed: Seed of the policies' own random numbers, for calls without a seed.
          collect_update_period: The number of calls of `train` between updates of the
            policy that collects. If it is more than 1, this policy has an actor of its
            own, a copy.
          records_policy_state: Whether recurrent networks' states are part of the
            collected `policy_info`; see `PPOPolicy`.

        Raises:
          ValueError: The reward is not one scalar, a network's output does not match,
            or a number is out of range.
          TypeError: A network is missing.
        """
        algorithm = type(self).__name__
        time_step_spec = checks.as_time_step_spec(time_step_spec, algorithm)
        action_spec = tensor_spec.from_spec(action_spec)
        construction.check_networks(actor_net=actor_net, value_net=value_net)
        construction.check_numbers(advantage_estimator, loss_weights, num_epochs)
        checks.check_gradient_clipping(gradient_clipping)
        observation_spec = policy_utils.network_observation_spec(
            time_step_spec.observation, observation_and_action_constraint_splitter
        )
        actor_net, value_net = (
            network_lib.as_network(network, observation_spec)
            for network in normalization.normalized_networks(
                observation_normalizer, observation_spec, actor_net, value_net
            )
        )
        collect_pairs = []
        if collect_update_period > 1:
            collect_pairs = [
                target_networks.with_target(
                    actor_net, None, "CollectActorNetwork", observation_spec
                )
            ]
        policies = construction.make_policies(
            time_step_spec,
            action_spec,
            actor_net,
            value_net,
            observation_and_action_constraint_splitter,
            seed,
            collect_net=collect_pairs[0][1] if collect_pairs else actor_net,
            records_state=records_policy_state,
        )
        collected = policies.collect.trajectory_spec
        training_info = {
            **collected.policy_info,
            **dict.fromkeys(
                ("value_prediction", "return", "advantage"),
                tf.TensorSpec([], tf.float32),
            ),
        }
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(policies.sample)
            if greedy_eval
            else policies.sample,
            policies.collect,
            train_sequence_length=None,
            training_data_spec=None
            if compute_value_and_advantage_in_train
            else collected._replace(policy_info=training_info),
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        self._sampling_policy, self._train_policy = policies.sample, policies.train
        self._actor_net, self._value_net = actor_net, value_net
        self._collect_pairs = collect_pairs
        if collect_pairs:
            self._update_collect_policy = target_networks.make_updater(
                collect_pairs, 1.0, collect_update_period
            )
        self._set_untracked(
            "_distribution_spec", self._actor_net.create_variables(observation_spec)
        )
        self._advantage_estimator = advantage_estimator
        self._loss_weights = loss_weights
        self._num_epochs = num_epochs
        self._normalize_advantages = normalize_advantages
        self._compute_in_train = compute_value_and_advantage_in_train
        self._update_normalizers_in_train = update_normalizers_in_train
        self._aggregate_losses_across_replicas = aggregate_losses_across_replicas
        if loss_weights.entropy:
            construction.check_has_entropy(policies.sample, loss_weights.entropy)
        self._optimizer = optimizers.OptimizerAdapter(
            optimizer, self._trained(), optimizers.all_to_norm(gradient_clipping)
        )
        self._as_collected = data_converter.AsTrajectory(self.collect_data_context)
        self._as_training_data = data_converter.AsTrajectory(self.data_context)

    @property
    def actor_net(self) -> Any:
        """The actor network, which normalizes observations by itself."""
        return self._actor_net

    @property
    def value_net(self) -> Any:
        """The value network, which normalizes observations by itself."""
        return self._value_net

    @property
    def num_epochs(self) -> int:
        """The number of updates in one call of `train`."""
        return self._num_epochs

    @property
    def compute_value_and_advantage_in_train(self) -> bool:
        """Whether `train` takes collected sequences, not preprocessed ones."""
        return self._compute_in_train

    @property
    def update_normalizers_in_train(self) -> bool:
        """Whether `train` adds its experience to the normalizers' statistics."""
        return self._update_normalizers_in_train

    def train(
        self, experience: Any, weights: tf.Tensor | None = None, **kwargs: Any
    ) -> tf_agent.LossInfo:
        """Does `num_epochs` updates on the experience; see `TFAgent.train`.

        Args:
          experience: With `compute_value_and_advantage_in_train`, frames `[B, T + 1]`
            of `collect_data_spec`, in order of time; the last one only gives the last
            observation. Otherwise any frames `[B, T]` that `preprocess_sequence` has
            returned, also single ones, `[B, 1]`; for recurrent networks, sequences.
          weights: The weight of each example in the loss, a scalar, `[B]` or `[B, T]`.
          **kwargs: `policy_state`, the collect policy's state before the first frame,
            `[B, ...]`; by default the initial state.

        Returns:
          The loss before the last update.
        """
        loss_info = super().train(experience, weights, **kwargs)
        if self._update_normalizers_in_train:
            # The rewards as they were collected, after all uses of the statistics.
            self.update_normalizers(self._counted(experience))
        return loss_info

    def _counted(self, experience: Any) -> trajectory.Trajectory:
        """Returns the frames of `train`'s experience that the normalizers count."""
        frames = self._as_training_data(experience)
        if not self._compute_in_train:
            return frames
        return tf.nest.map_structure(lambda leaf: leaf[:, :-1], frames)

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rate and, of experience, what `_measure` does."""
        rate = self._optimizer.learning_rate()
        numbers = {} if rate is None else {"learning_rate": rate}
        if experience is None:
            return numbers
        data = self._prepare(self._normalizers.normalize_rewards(experience))
        return {**numbers, **self._measure(data, self._distribution(data))}

    def _measure(self, data: TrainingData, distribution: Any) -> dict[str, tf.Tensor]:
        """Returns the policy's mean entropy and how much the critic explains."""
        numbers = {
            "explained_variance": losses.explained_variance(
                data.old_values, data.returns, data.valid
            )
        }
        entropy = self._entropy(distribution)
        if entropy is not None:
            numbers["entropy"] = losses.masked_mean(entropy, data.valid)
        return numbers

    # Data.

    def _preprocess_sequence(self, experience: Any, policy_state: Any = ()) -> Any:
        """Returns training data, unless `train` computes values and advantages itself.

        Args:
          experience: Frames of `collect_data_spec` in order of time, `[B, T + 1, ...]`,
            or `[T + 1, ...]`. Of the last frame, only the observation and the step type
            are used.
          policy_state: The collect policy's state before the first frame, `[B, ...]`;
            `()` stands for the initial state.

        Returns:
          Frames `[B, T, ...]`, or `[T, ...]`, of `training_data_spec`: the first `T`,
          with the entries 'return', 'advantage' and 'value_prediction' in their
          `policy_info`.
        """
        if self._compute_in_train:
            return experience
        spec = self.collect_data_spec
        if nest_utils.get_outer_rank(experience.discount, spec.discount) == 1:
            experience = nest_utils.batch_nested_tensors(experience)
            processed = self._preprocess_sequence(experience, policy_state)
            return tf.nest.map_structure(lambda leaf: leaf[0], processed)
        frames = self._as_collected(experience)
        scaled = self._normalizers.normalize_rewards(frames)
        processed = self._with_advantages(scaled, policy_state)
        return processed._replace(reward=frames.reward[:, :-1])

    def _with_advantages(
        self, frames: trajectory.Trajectory, policy_state: Any
    ) -> trajectory.Trajectory:
        """Returns training data `[B, T]` for frames `[B, T + 1]`."""
        if frames.discount.shape[1] == 1:
            raise ValueError(
                "experience: expected at least 2 frames [B, T + 1, ...], of which the "
                "last gives the last observation, got 1; collect more of them."
            )
        frames = advantages_lib.marked(frames)
        values, _ = self.collect_policy.apply_value_network(
            frames.observation,
            frames.step_type,
            data_lib.state_of(policy_state, ppo_policy.VALUE_STATE),
        )
        values = tf.stop_gradient(values)
        _, _, next_time_steps = trajectory.to_transition(frames)
        frames = tf.nest.map_structure(lambda leaf: leaf[:, :-1], frames)
        returns, advantages = self._estimate(
            frames, next_time_steps, values, policy_state
        )
        info = {
            **frames.policy_info,
            "value_prediction": values[:, :-1],
            "return": returns,
            "advantage": advantages,
        }
        return frames._replace(policy_info=info)

    def _estimate(
        self,
        frames: trajectory.Trajectory,
        next_time_steps: ts.TimeStep,
        values: tf.Tensor,
        policy_state: Any,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the returns and the advantages of frames `[B, T]`.

        The other arguments are those of `compute_return_and_advantage` and of
        `_with_advantages`. Override it for estimates that depend on the actions.
        """
        del frames, policy_state
        return self.compute_return_and_advantage(next_time_steps, values)

    def compute_return_and_advantage(
        self, next_time_steps: ts.TimeStep, value_preds: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the returns and the advantages of steps, each `[B, T]`.

        Args:
          next_time_steps: The time steps that the steps reach, `[B, T]`, with
            normalized rewards.
          value_preds: The values of the observations before the first step and after
            each step, `[B, T + 1]`.
        """
        return self._advantage_estimator.estimate(
            next_time_steps.reward,
            next_time_steps.discount,
            value_preds,
            next_time_steps.is_mid(),
        )

    def _prepare(
        self, experience: Any, weights: tf.Tensor | None = None, policy_state: Any = ()
    ) -> TrainingData:
        """Returns the steps of the experience with all that is the same in each epoch.

        The arguments are those of `train`, with normalized rewards.
        """
        frames = self._as_training_data(experience)
        if self._compute_in_train:
            frames = self._with_advantages(frames, policy_state)
        valid = ppo_utils.make_trajectory_mask(frames)
        info = frames.policy_info
        advantages = info["advantage"]
        if self._normalize_advantages:
            advantages = data_lib.normalized(advantages, valid)
        counts = tf.cast(valid, tf.float32)
        if weights is not None:
            counts *= losses.expand_weights(weights, counts)
        old = ppo_utils.distribution_from_spec(
            self._distribution_spec, info["dist_params"]
        )
        return TrainingData(
            time_steps=data_lib.time_steps_of(frames),
            actions=frames.action,
            returns=data_lib.masked(info["return"], valid),
            advantages=data_lib.masked(advantages, valid),
            old_values=data_lib.masked(info["value_prediction"], valid),
            old_log_probs=data_lib.masked(self._log_probs(old, frames.action), valid),
            dist_params=info["dist_params"],
            valid=valid,
            weights=counts,
            policy_state=policy_state,
        )

    # Training.

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        policy_state: Any = (),
    ) -> tf_agent.LossInfo:
        data = self._prepare(experience, weights, policy_state)
        loss_info = self._repeat(lambda: self._update_once(data))
        self._after_epochs(data)
        if self._collect_pairs:
            self._update_collect_policy()
        return loss_info

    def _repeat(self, update: Callable[[], tf_agent.LossInfo]) -> tf_agent.LossInfo:
        """Calls `update` once for each epoch, in a loop of the graph if in a graph."""
        if self._num_epochs == 1:
            return update()
        zero = tf.constant(0.0)
        parts = self._loss_info_type(*[zero] * len(self._loss_info_type._fields))
        _, loss_info = tf.while_loop(
            lambda epoch, _: epoch < self._num_epochs,
            lambda epoch, _: (epoch + 1, update()),
            (0, tf_agent.LossInfo(zero, parts)),
            maximum_iterations=self._num_epochs,
        )
        return loss_info

    def _update_once(self, data: TrainingData) -> tf_agent.LossInfo:
        checked, parts = self._gradient_step(
            lambda: self._total_loss(data, training=True),
            self._trained(),
            self._optimizer,
        )
        self._count(checked)
        return tf_agent.LossInfo(checked, parts)

    def _after_epochs(self, data: TrainingData) -> None:
        """Adapts what the algorithm adapts after the updates; nothing by default."""

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
        policy_state: Any = (),
    ) -> tf_agent.LossInfo:
        return self._total_loss(
            self._prepare(experience, weights, policy_state), training
        )

    def _total_loss(
        self, data: TrainingData, training: bool = False
    ) -> tf_agent.LossInfo:
        """Returns the sum of the parts of the loss, and these."""
        loss_info = self._losses(data, training)
        if self.summaries_enabled:
            summaries.summarize_scalar_dict(
                {**loss_info.extra._asdict(), "total_loss": loss_info.loss},
                step=self.train_step_counter,
            )
        if self.debug_summaries:
            summaries.summarize_histogram_dict(
                {
                    "advantages": data.advantages,
                    "returns": data.returns,
                    "value_preds": data.old_values,
                    "action_log_prob_sample": data.old_log_probs,
                },
                self.train_step_counter,
            )
        return loss_info

    @abc.abstractmethod
    def _losses(self, data: TrainingData, training: bool) -> tf_agent.LossInfo:
        """Returns the loss, and its parts as a `_loss_info_type`, all scalars."""

    def _policy_gradient_parts(
        self, distribution: Any, data: TrainingData, training: bool
    ) -> dict[str, tf.Tensor]:
        """Returns the losses `-A log pi(a|s)`, of the values and of the entropy."""
        log_probs = self._log_probs(distribution, data.actions)
        return {
            "policy_gradient_loss": -self._mean(
                log_probs * data.advantages, data.weights
            ),
            "value_estimation_loss": self.value_estimation_loss(
                self._values(data, training), data.returns, data.weights
            ),
            "entropy_regularization_loss": self.entropy_regularization_loss(
                distribution, data.weights
            ),
        }

    def value_estimation_loss(
        self,
        values: tf.Tensor,
        returns: tf.Tensor,
        weights: tf.Tensor,
        old_value_predictions: tf.Tensor | None = None,
        value_clipping: Any = None,
    ) -> tf.Tensor:
        """Returns the weighted mean squared error of values, times its coefficient.

        Args:
          values: The values, `[B, T]`.
          returns: The returns to predict, `[B, T]`.
          weights: Float32 `[B, T]`.
          old_value_predictions: The values before training, `[B, T]`.
          value_clipping: See `losses.clipped_value_loss`.
        """
        error = losses.clipped_value_loss(
            values, returns, old_value_predictions, value_clipping
        )
        return self._loss_weights.value * self._mean(error, weights)

    def entropy_regularization_loss(
        self, distribution: Any, weights: tf.Tensor
    ) -> tf.Tensor:
        """Returns minus the weighted mean entropy, times the coefficient.

        Args:
          distribution: The nest of distributions of actions, batch shape `[B, T]`.
          weights: Float32 `[B, T]`.
        """
        if not self._loss_weights.entropy:
            return tf.constant(0.0)
        entropy = self._entropy(distribution)
        return -self._loss_weights.entropy * self._mean(entropy, weights)

    def l2_regularization_loss(self) -> tf.Tensor:
        """Returns the sums of the squares of kernels, times their coefficients."""
        kernels = construction.kernels(self._actor_net, self._value_net)
        total = tf.constant(0.0)
        for coefficient, of_network in zip(
            (
                self._loss_weights.policy_l2,
                self._loss_weights.value_l2,
                self._loss_weights.shared_l2,
            ),
            kernels,
            strict=True,
        ):
            if coefficient and of_network:
                squares = [tf.reduce_sum(tf.square(kernel)) for kernel in of_network]
                total += coefficient * tf.nn.scale_regularization_loss(squares)
        return total

    def _mean(self, per_step: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns the weighted sum divided by the number of all frames, a scalar."""
        if self._aggregate_losses_across_replicas:
            return losses.aggregate_losses(per_step, weights).weighted
        return tf.reduce_mean(tf.math.multiply_no_nan(per_step, weights))

    # Networks.

    def _distribution(self, data: TrainingData, training: bool = False) -> Any:
        """Returns the current policy's distributions, batch shape `[B, T]`."""
        policy = self._train_policy if training else self._sampling_policy
        return policy.distribution(data.time_steps, data.policy_state).action

    def _values(self, data: TrainingData, training: bool = False) -> tf.Tensor:
        """Returns the critic's values, `[B, T]`."""
        values, _ = self.collect_policy.apply_value_network(
            data.time_steps.observation,
            data.time_steps.step_type,
            data_lib.state_of(data.policy_state, ppo_policy.VALUE_STATE),
            training=training,
        )
        return values

    def _log_probs(self, distribution: Any, action: Any) -> tf.Tensor:
        """Returns the log-probabilities of actions, float32 `[B, T]`."""
        return recorded.log_probability(distribution, action, self.action_spec)

    def _entropy(self, distribution: Any) -> tf.Tensor | None:
        """Returns the entropy, float32 `[B, T]`; None without a closed form."""
        if not construction.has_entropy(distribution):
            return None
        entropy = actions.entropy(distribution, self.action_spec, outer_rank=2)
        return tf.cast(entropy, tf.float32)

    def _trained(self) -> list[Any]:
        networks = (self._actor_net, self._value_net)
        return list(
            {id(v): v for n in networks for v in n.trainable_variables}.values()
        )

    def _initialize(self) -> None:
        target_networks.copy_weights(self._collect_pairs)

    def _variables(self) -> list[tf.Variable]:
        networks = [self._actor_net, self._value_net]
        networks += [network for _, network in self._collect_pairs]
        weights = [v for network in networks for v in network.variables]
        counters: list[tf.Variable] = []
        if self._collect_pairs:
            counters = self._update_collect_policy.variables()
        return variables.as_tf_variables(
            [*weights, *counters, *self._optimizer.variables()]
        )
