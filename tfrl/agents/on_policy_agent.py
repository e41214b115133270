"""The base class of agents with an actor and a critic that learn on-policy.

They collect frames with the current policy, compute returns and advantages from them,
and minimise

    policy loss + c_V L_V(V(s), G) - c_H H(pi(.|s)) + L2 penalty

with one optimizer. `PPOAgent` and `A2CAgent` differ in the policy loss.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import advantages as advantages_lib
from tfrl.agents import checks, data_converter, normalization, tf_agent
from tfrl.agents.ppo import ppo_policy, ppo_utils
from tfrl.compilation import replicas
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
    number_checks,
    optimizers,
    summaries,
    variables,
)
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class LossWeights(NamedTuple):
    """The weights of the parts of the loss besides the policy's."""

    value: float = 0.5
    entropy: float = 0.0
    policy_l2: float = 0.0
    value_l2: float = 0.0
    shared_l2: float = 0.0


class TrainingData(NamedTuple):
    """The steps that one call of `train` learns from.

    Attributes:
      time_steps: The time steps, `[B, T, ...]`.
      actions: The nest of actions, `[B, T, ...]`.
      returns: `[B, T]`.
      advantages: Normalized advantages, 0 where a step is not valid, `[B, T]`.
      old_values: The values when the returns were computed, `[B, T]`.
      old_log_probs: The log-probabilities of the actions when they were taken, 0 where
        a step is not valid, `[B, T]`.
      dist_params: The parameters of the distributions that the actions were drawn from.
      valid: Whether a frame is a step of an environment, bool `[B, T]`.
      weights: The weight of each step, 0 where it is not valid, `[B, T]`.
      policy_state: The collect policy's state before the first step, `[B, ...]`.
    """

    time_steps: ts.TimeStep
    actions: Any
    returns: tf.Tensor
    advantages: tf.Tensor
    old_values: tf.Tensor
    old_log_probs: tf.Tensor
    dist_params: Any
    valid: tf.Tensor
    weights: tf.Tensor
    policy_state: Any


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
        loss_weights: LossWeights,
        num_epochs: int,
        normalize_advantages: bool,
        observation_normalizer: TensorNormalizer | bool | None,
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
          observation_normalizer: See `PPOAgent`; True makes one.
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

        Raises:
          ValueError: The reward is not one scalar, a network's output does not match,
            or a number is out of range.
          TypeError: A network is missing.
        """
        algorithm = type(self).__name__
        time_step_spec = checks.as_time_step_spec(time_step_spec, algorithm)
        action_spec = tensor_spec.from_spec(action_spec)
        _check_networks(actor_net=actor_net, value_net=value_net)
        _check_numbers(advantage_estimator, loss_weights, num_epochs)
        checks.check_gradient_clipping(gradient_clipping)
        observation_spec = policy_utils.network_observation_spec(
            time_step_spec.observation, observation_and_action_constraint_splitter
        )
        if observation_normalizer is True:
            observation_normalizer = _streaming_normalizer(observation_spec)
        actor_net, value_net = (
            network_lib.as_network(network, observation_spec)
            for network in normalization.normalized_networks(
                observation_normalizer, observation_spec, actor_net, value_net
            )
        )
        parts: dict[str, Any] = {
            "time_step_spec": time_step_spec,
            "action_spec": action_spec,
            "actor_network": actor_net,
            "value_network": value_net,
            "observation_and_action_constraint_splitter": (
                observation_and_action_constraint_splitter
            ),
            "seed": seed,
        }
        # Values are computed for whole sequences, in `preprocess_sequence` or `train`,
        # not with each action. The collected actions stay unclipped, because the
        # recorded distributions are those of unclipped actions.
        collect_policy = ppo_policy.PPOPolicy(
            **parts, clip=False, compute_value_and_advantage_in_train=True
        )
        sampling_policy = ppo_policy.PPOPolicy(**parts, collect=False)
        collected = collect_policy.trajectory_spec
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
            greedy_policy.GreedyPolicy(sampling_policy)
            if greedy_eval
            else sampling_policy,
            collect_policy,
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
        self._sampling_policy = sampling_policy
        self._train_policy = ppo_policy.PPOPolicy(**parts, collect=False, training=True)
        self._actor_net, self._value_net = actor_net, value_net
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
            self._check_has_entropy()
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
        return {**numbers, **self._measure(data)}

    def _measure(self, data: TrainingData) -> dict[str, tf.Tensor]:
        """Returns the policy's mean entropy and how much the critic explains."""
        distribution = self._distribution(data)
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
            _state_of(policy_state, ppo_policy.VALUE_STATE),
        )
        values = tf.stop_gradient(values)
        continues = advantages_lib.continues(frames)
        frames = tf.nest.map_structure(lambda leaf: leaf[:, :-1], frames)
        returns, advantages = self._advantage_estimator.estimate(
            frames.reward, frames.discount, values, continues
        )
        info = {
            **frames.policy_info,
            "value_prediction": values[:, :-1],
            "return": returns,
            "advantage": advantages,
        }
        return frames._replace(policy_info=info)

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
            advantages = _normalized(advantages, valid)
        counts = tf.cast(valid, tf.float32)
        if weights is not None:
            counts *= losses.expand_weights(weights, counts)
        old = ppo_utils.distribution_from_spec(
            self._distribution_spec, info["dist_params"]
        )
        return TrainingData(
            time_steps=_time_steps(frames),
            actions=frames.action,
            returns=_masked(info["return"], valid),
            advantages=_masked(advantages, valid),
            old_values=_masked(info["value_prediction"], valid),
            old_log_probs=_masked(self._log_probs(old, frames.action), valid),
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
        return loss_info

    @abc.abstractmethod
    def _losses(self, data: TrainingData, training: bool) -> tf_agent.LossInfo:
        """Returns the loss, and its parts as a `_loss_info_type`, all scalars."""

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
        own_actor, own_critic, shared = self._kernels()
        total = tf.constant(0.0)
        for coefficient, kernels in (
            (self._loss_weights.policy_l2, own_actor),
            (self._loss_weights.value_l2, own_critic),
            (self._loss_weights.shared_l2, shared),
        ):
            if coefficient:
                squares = [tf.reduce_sum(tf.square(kernel)) for kernel in kernels]
                if squares:
                    total += coefficient * tf.nn.scale_regularization_loss(squares)
        return total

    def _kernels(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Returns the kernels of the actor alone, the critic alone, and of both."""
        of_actor, of_critic = (
            [v for v in network.trainable_variables if "kernel" in v.name]
            for network in (self._actor_net, self._value_net)
        )
        shared = variables.extract_shared_variables(of_actor, of_critic)
        is_shared = {id(v) for v in shared}
        return (
            [v for v in of_actor if id(v) not in is_shared],
            [v for v in of_critic if id(v) not in is_shared],
            shared,
        )

    def _mean(self, per_step: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns the weighted sum divided by the number of all frames, a scalar."""
        if self._aggregate_losses_across_replicas:
            return losses.aggregate_losses(per_step, weights).weighted
        return tf.reduce_mean(tf.math.multiply_no_nan(per_step, weights))

    # Networks.

    def _distribution(self, data: TrainingData, training: bool = False) -> Any:
        """Returns the current policy's distributions, batch shape `[B, T]`."""
        policy = self._train_policy if training else self._sampling_policy
        state = _state_of(data.policy_state, ppo_policy.ACTOR_STATE)
        if tf.nest.flatten(state):
            state = {ppo_policy.ACTOR_STATE: state}
        return policy.distribution(data.time_steps, state).action

    def _values(self, data: TrainingData, training: bool = False) -> tf.Tensor:
        """Returns the critic's values, `[B, T]`."""
        values, _ = self.collect_policy.apply_value_network(
            data.time_steps.observation,
            data.time_steps.step_type,
            _state_of(data.policy_state, ppo_policy.VALUE_STATE),
            training=training,
        )
        return values

    def _log_probs(self, distribution: Any, action: Any) -> tf.Tensor:
        """Returns the log-probabilities of actions, float32 `[B, T]`."""
        return recorded.log_probability(distribution, action, self.action_spec)

    def _entropy(self, distribution: Any) -> tf.Tensor | None:
        """Returns the entropy, float32 `[B, T]`; None without a closed form."""
        if not _has_entropy(distribution):
            return None
        entropy = actions.entropy(distribution, self.action_spec, outer_rank=2)
        return tf.cast(entropy, tf.float32)

    def _check_has_entropy(self) -> None:
        """Raises an error if the entropy bonus would leave out an action."""
        observation = tensor_spec.zero_spec_nest(self.time_step_spec, outer_dims=[1])
        step = self._sampling_policy.distribution(observation)
        if not _has_entropy(step.action):
            raise ValueError(
                f"entropy_regularization: got {self._loss_weights.entropy}, but a "
                f"distribution of actor_net {self._actor_net.name!r} has no entropy in "
                "closed form, as those squashed to bounds by tanh; give 0, or a "
                "network with other distributions, such as the normal ones of an "
                "ActorDistributionNetwork."
            )

    def _trained(self) -> list[Any]:
        networks = (self._actor_net, self._value_net)
        return list(
            {id(v): v for n in networks for v in n.trainable_variables}.values()
        )

    def _variables(self) -> list[tf.Variable]:
        networks = (self._actor_net, self._value_net)
        weights = [v for network in networks for v in network.variables]
        return variables.as_tf_variables([*weights, *self._optimizer.variables()])


def _time_steps(frames: trajectory.Trajectory) -> ts.TimeStep:
    return ts.TimeStep(
        step_type=frames.step_type,
        reward=frames.reward,
        discount=frames.discount,
        observation=frames.observation,
    )


def _state_of(policy_state: Any, name: str) -> Any:
    return policy_state.get(name, ()) if policy_state else ()


def _masked(values: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Returns numbers without gradient, 0 where not valid."""
    return tf.stop_gradient(tf.where(valid, values, 0.0))


def _normalized(advantages: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Normalizes the advantages of valid steps, unless there is only one."""
    mask = tf.cast(valid, tf.float32)
    standardized = losses.standardize(advantages, mask, replicas.reduce_sum)
    return tf.where(replicas.reduce_sum(mask) > 1, standardized, advantages)


def _has_entropy(distributions: Any) -> bool:
    for distribution in tf.nest.flatten(distributions):
        try:
            distribution.entropy()
        except NotImplementedError:
            return False
    return True


def _streaming_normalizer(observation_spec: Any) -> StreamingTensorNormalizer:
    return StreamingTensorNormalizer(observation_spec, scope="normalize_observations")


def _check_networks(**networks: Any) -> None:
    for name, network in networks.items():
        if network is None:
            raise TypeError(
                f"{name}: got None, expected a network; make both networks with "
                "agents.ppo.ppo_networks.create_networks(observation_spec, "
                "action_spec)."
            )


def _check_numbers(
    advantage_estimator: advantages_lib.AdvantageEstimator,
    loss_weights: LossWeights,
    num_epochs: int,
) -> None:
    for name, value in (
        ("discount_factor", advantage_estimator.discount_factor),
        ("lambda_value", advantage_estimator.lambda_),
    ):
        number_checks.check_number(
            name, value, 0.0, 1.0, remedy="0.99 and 0.95 are usual"
        )
    names = {
        "value_pred_loss_coef": loss_weights.value,
        "entropy_regularization": loss_weights.entropy,
        "policy_l2_reg": loss_weights.policy_l2,
        "value_function_l2_reg": loss_weights.value_l2,
        "shared_vars_l2_reg": loss_weights.shared_l2,
    }
    for name, value in names.items():
        number_checks.check_number(
            name, value, 0.0, remedy="it is the weight of a part of the loss"
        )
    number_checks.check_integer(
        "num_epochs", num_epochs, 1, remedy="it is the number of updates a call"
    )
