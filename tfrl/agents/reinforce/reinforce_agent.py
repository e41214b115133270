"""REINFORCE, with an optional state-value baseline.

The loss over whole episodes is

    L = -1/N sum_t A_t log pi(a_t | s_t),    A_t = G_t - V(s_t)

(A_t = G_t without a baseline), where N counts episodes and G_t is the discounted return
from t on. Williams, "Simple statistical gradient-following algorithms for connectionist
reinforcement learning" (1992), section 5; Sutton and Barto, "Reinforcement learning: an
introduction" (2018), section 13.4, for the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, data_converter, normalization, options, tf_agent
from tfrl.compilation import accelerators, replicas
from tfrl.networks import network as network_lib
from tfrl.policies import actor_policy, greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import episodes, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, nest_utils, number_checks, summaries
from tfrl.utils.optimization import optimizers
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer

AdvantageFnType = Callable[[tf.Tensor, tf.Tensor | None], tf.Tensor]


class ReinforceAgentLossInfo(NamedTuple):
    """The scalar parts of the loss."""

    policy_gradient_loss: tf.Tensor
    policy_network_regularization_loss: tf.Tensor
    entropy_regularization_loss: tf.Tensor
    value_estimation_loss: tf.Tensor
    value_network_regularization_loss: tf.Tensor


class ReinforceAgent(tf_agent.TFAgent):
    """A REINFORCE agent.

    `train` takes rows `[B, T, ...]`, each of which holds whole episodes one after
    another. Frames of incomplete episodes and boundary frames are masked.

    With a value network, a truncated episode is bootstrapped if the row holds the
    boundary frame after it, as the rows of `EpisodicLoop` and of the drivers do.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        value_network: types.Network | types.Layer | None = None,
        value_estimation_loss_coef: float = 0.2,
        advantage_fn: AdvantageFnType | None = None,
        use_advantage_loss: bool = True,
        gamma: float = 1.0,
        normalize_returns: bool = True,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        entropy_regularization: float | None = None,
        train_step_counter: tf.Variable | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the policies.

        `AgentOptions` explains the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          actor_network: A `Network` that maps observations to action distributions.
          optimizer: The optimizer of all weights.
          value_network: The baseline, a `Network` that maps observations to values
            `[B]`.
          value_estimation_loss_coef: Weight of the baseline's squared error.
          advantage_fn: A function of (returns, value predictions) that returns the
            advantages; the predictions are None without a value network.
          use_advantage_loss: Whether to subtract the value predictions from the
            returns, if there is no `advantage_fn`.
          gamma: The discount factor.
          normalize_returns: Whether to normalize the advantages of all valid frames to
            mean 0 and standard deviation 1.
          gradient_clipping: The largest norm of each variable's gradient.
          entropy_regularization: Weight of the entropy bonus: the entropies of all
            frames that are not masked, divided by the number of frames that are not
            padding.

        Raises:
          ValueError: The reward is not one scalar, or the value network returns more
            than one number per observation.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "REINFORCE")
        action_spec = tensor_spec.from_spec(action_spec)
        checks.check_gamma(gamma)
        checks.check_gradient_clipping(gradient_clipping)
        agent = options.AgentOptions(
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        _check_weights(value_estimation_loss_coef, entropy_regularization)
        observation_spec = time_step_spec.observation
        actor_network, value_network = normalization.normalized_networks(
            observation_normalizer, observation_spec, actor_network, value_network
        )
        actor_network = network_lib.as_network(actor_network, observation_spec)
        actor_network.create_variables(observation_spec)
        if value_network is not None:
            value_network = network_lib.as_network(value_network, observation_spec)
            nest_utils.assert_value_spec(
                value_network.create_variables(observation_spec), "value_network"
            )
        collect_policy = actor_policy.ActorPolicy(
            time_step_spec, action_spec, actor_network=actor_network, seed=seed
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(collect_policy),
            collect_policy,
            train_sequence_length=None,
            **agent.of_base(),
        )
        self._actor_network = actor_network
        self._value_network: Any = value_network
        self._value_estimation_loss_coef = value_estimation_loss_coef
        if advantage_fn is None:
            use_baseline = use_advantage_loss and value_network is not None
            advantage_fn = _subtract_values if use_baseline else _keep_returns
        self._advantage_fn = advantage_fn
        self._gamma = gamma
        self._normalize_returns = normalize_returns
        self._entropy_regularization = entropy_regularization
        networks = [actor_network, value_network]
        self._set_only_part(
            [network for network in networks if network is not None],
            optimizer,
            optimizers.each_to_norm(gradient_clipping),
        )
        self._as_trajectory = data_converter.AsTrajectory(self.data_context)

    @property
    def bootstraps_truncations(self) -> bool:
        """Whether there is a value network."""
        return self._value_network is not None

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        frames = self._as_trajectory(experience)
        returns = self._returns(frames)
        return self.total_loss(frames, returns, weights=weights, training=training)

    def _returns(self, frames: trajectory.Trajectory) -> tf.Tensor:
        """Returns G_t for every frame, `[B, T]`; the sum stops at an episode's end."""
        rewards = frames.reward
        discounts = self._gamma * frames.discount
        if self._value_network is not None:
            rewards += discounts * self._values_at_truncations(frames)
        goes_on = tf.cast(~frames.is_last() & ~episodes.is_cut(frames), tf.float32)
        returns = losses.discounted_returns(
            common.transpose_batch_time(rewards),
            common.transpose_batch_time(goes_on * discounts),
        )
        return tf.stop_gradient(common.transpose_batch_time(returns))

    def _values_at_truncations(self, frames: trajectory.Trajectory) -> tf.Tensor:
        """Returns V of the last observation for frames that end an episode, else 0.

        The last observation is in the next frame, a boundary. The last frame of a row
        gets 0, because no frame follows it. The values at terminations do not matter,
        because the caller multiplies them by a discount of 0.
        """
        values = self._values(frames)
        next_values = tf.pad(values[:, 1:], [[0, 0], [0, 1]])
        return tf.where(episodes.last_observation_follows(frames), next_values, 0.0)

    def total_loss(
        self,
        experience: trajectory.Trajectory,
        returns: tf.Tensor,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the loss of frames `[B, T, ...]` with their returns `[B, T]`.

        Raises:
          tf.errors.InvalidArgumentError: No episode in `experience` is complete.
        """
        num_episodes = _count_episodes(experience)
        valid = episodes.in_complete_episode(experience)
        if weights is None:
            weights = valid
        else:
            weights = valid * common.expand_weights(weights, valid)
        values = None
        if self._value_network is not None:
            values = self._values(experience, training)
        advantages = tf.stop_gradient(self._advantage_fn(returns, values))
        self._summarize_histograms(
            {
                "rewards": experience.reward,
                "discounts": experience.discount,
                "returns": returns,
                "value_preds": values,
                "advantages": advantages,
            }
        )
        if self._normalize_returns:
            advantages = losses.standardize(advantages, valid, replicas.reduce_sum)
            baseline = "returns" if values is None else "advantages"
            self._summarize_histograms({f"normalized_{baseline}": advantages})
        distribution = self._distribution(experience)
        policy_gradient_loss = self.policy_gradient_loss(
            distribution,
            experience.action,
            experience.is_boundary(),
            advantages,
            num_episodes,
            weights,
        )
        # The entropy loss is a mean over all frames; the division excludes padding.
        share_of_frames = replicas.mean(
            tf.reduce_mean(tf.cast(~episodes.is_padding(experience), tf.float32))
        )
        zero = tf.constant(0.0)
        parts = ReinforceAgentLossInfo(
            policy_gradient_loss=policy_gradient_loss,
            policy_network_regularization_loss=_regularization(self._actor_network),
            entropy_regularization_loss=self.entropy_regularization_loss(
                distribution, weights
            )
            / share_of_frames,
            value_estimation_loss=zero
            if values is None
            else self.value_estimation_loss(values, returns, num_episodes, weights),
            value_network_regularization_loss=zero
            if values is None
            else _regularization(self._value_network),
        )
        total = tf.add_n(list(parts))
        self._summaries.write_losses(total, parts._asdict())
        return tf_agent.LossInfo(total, parts)

    def _values(
        self, frames: trajectory.Trajectory, training: bool = False
    ) -> tf.Tensor:
        """Returns V of each frame's observation, `[B, T]`."""
        values, _ = self._value_network(
            frames.observation, step_type=frames.step_type, training=training
        )
        # A Keras layer with one unit leaves a dimension of 1.
        return tf.squeeze(values, axis=-1) if values.shape.rank == 3 else values

    def _distribution(self, frames: trajectory.Trajectory) -> Any:
        """Returns the policy's distributions at all frames, batch shape `[B, T]`."""
        time_steps = ts.TimeStep(
            step_type=frames.step_type,
            reward=tf.nest.map_structure(tf.zeros_like, frames.reward),
            discount=tf.zeros_like(frames.discount),
            observation=frames.observation,
        )
        batch_size = frames.discount.shape[0] or tf.shape(frames.discount)[0]
        state = self.collect_policy.get_initial_state(batch_size)
        return self.collect_policy.distribution(time_steps, policy_state=state).action

    def policy_gradient_loss(
        self,
        actions_distribution: types.NestedDistribution,
        actions: types.NestedTensor,
        is_boundary: tf.Tensor,
        returns: tf.Tensor,
        num_episodes: types.Int,
        weights: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns `-1/N sum_t w_t A_t log pi(a_t | s_t)`, with boundaries left out.

        Args:
          actions_distribution: A nest of distributions of batch shape `[B, T]`.
          actions: A nest of actions, `[B, T, ...]`.
          is_boundary: Whether each frame is a boundary, bool `[B, T]`.
          returns: Returns or advantages, float32 `[B, T]`.
          num_episodes: The number of episodes, N.
          weights: Float32 `[B, T]`, or None.
        """
        log_probability = common.log_probability(
            actions_distribution, actions, self.action_spec
        )
        weights = tf.cast(~is_boundary, tf.float32) * (
            1.0 if weights is None else weights
        )
        weighted = tf.math.multiply_no_nan(log_probability * returns, weights)
        self._summarize_histograms(
            {
                "action_log_prob": log_probability,
                "action_log_prob_times_return": weighted,
            }
        )
        return -tf.reduce_sum(weighted) / num_episodes

    def entropy_regularization_loss(
        self,
        actions_distribution: types.NestedDistribution,
        weights: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns minus the mean weighted entropy, times the coefficient.

        Args:
          actions_distribution: A nest of distributions of batch shape `[B, T]`.
          weights: Float32 `[B, T]`, or None.

        Raises:
          ValueError: The distribution has no analytic entropy.
        """
        if not self._entropy_regularization:
            return tf.constant(0.0)
        entropy = common.entropy(actions_distribution, self.action_spec, outer_rank=2)
        if entropy is None:
            raise ValueError(
                "entropy_regularization: the actor network's distribution has no "
                "analytic entropy; give entropy_regularization=None."
            )
        entropy = tf.cast(entropy, tf.float32) * (1.0 if weights is None else weights)
        return -self._entropy_regularization * tf.reduce_mean(entropy)

    def value_estimation_loss(
        self,
        value_preds: tf.Tensor,
        returns: tf.Tensor,
        num_episodes: types.Int,
        weights: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns the baseline's squared error per episode, times the coefficient."""
        error = tf.math.squared_difference(returns, value_preds)
        if weights is not None:
            error = tf.math.multiply_no_nan(error, weights)
        return self._value_estimation_loss_coef * tf.reduce_sum(error) / num_episodes

    def _summarize_histograms(self, tensors: dict[str, tf.Tensor | None]) -> None:
        if self.debug_summaries:
            summaries.summarize_histogram_dict(tensors, self.train_step_counter)


def _count_episodes(frames: trajectory.Trajectory) -> tf.Tensor:
    """Returns the number of episodes that end in the frames; raises an error for 0.

    With several replicas, it is their mean.
    """
    num_episodes = replicas.mean(episodes.count(frames))
    if accelerators.in_graph():
        return num_episodes  # A loop collects whole episodes, or raises its own error.
    tf.debugging.assert_greater(
        num_episodes,
        0.0,
        message=(
            "experience: REINFORCE learns from whole episodes, and none of this "
            "experience is complete (no next_step_type is LAST); collect until an "
            "episode ends, in a buffer that holds all of it."
        ),
    )
    return num_episodes


def _subtract_values(returns: tf.Tensor, values: tf.Tensor | None) -> tf.Tensor:
    return returns - values


def _keep_returns(returns: tf.Tensor, _values: tf.Tensor | None) -> tf.Tensor:
    return returns


def _regularization(network: Any) -> tf.Tensor:
    penalties = network.losses
    return tf.add_n(penalties) if penalties else tf.constant(0.0)


def _check_weights(
    value_estimation_loss_coef: Any, entropy_regularization: Any
) -> None:
    """Raises an error unless both are finite, and the first is not negative."""
    number_checks.check_number(
        "value_estimation_loss_coef",
        value_estimation_loss_coef,
        0.0,
        remedy="it is the weight of the baseline's squared error",
    )
    if entropy_regularization is not None:
        number_checks.check_number(
            "entropy_regularization",
            entropy_regularization,
            remedy="it is the weight of the entropy bonus, and None is without one",
        )
