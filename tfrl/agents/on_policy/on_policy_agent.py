"""The base class of agents with an actor and a critic that learn on-policy.

They collect frames with the current policy, compute returns and advantages from them,
and minimise

    policy loss + c_V L_V(V(s), G) - c_H H(pi(.|s)) + L2 penalty

with one optimizer, plus the networks' own regularisation losses. `PPOAgent` and
`A2CAgent` differ in the policy loss.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, data_converter, tf_agent, updates
from tfrl.agents.on_policy import actor_and_critic, training_data
from tfrl.agents.on_policy import advantages as advantages_lib
from tfrl.compilation import accelerators, replicas
from tfrl.distributions import recorded
from tfrl.networks import layer_utils
from tfrl.policies import greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import nest_utils, number_checks, variables
from tfrl.utils.optimization import optimizers

if TYPE_CHECKING:
    from tfrl.agents import options
    from tfrl.agents.on_policy import on_policy_options
    from tfrl.typing import types


class RolloutAgent(tf_agent.TFAgent):
    """Base class of agents that learn from rollouts of their current policy.

    A subclass turns frames into training data in `_preprocess_sequence`, calls
    `_set_only_part`, and implements `_prepare` and `_losses`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Makes the converters of experience; for the arguments see `TFAgent`."""
        super().__init__(*args, **kwargs)
        self._as_collected = data_converter.AsTrajectory(self.collect_data_context)
        self._as_training_data = data_converter.AsTrajectory(self.data_context)

    @abc.abstractmethod
    def _losses(self, data: Any, training: bool) -> tf_agent.LossInfo:
        """Returns the loss, and its parts as an `_info`, all scalars.

        The networks' own regularisation losses are added later.

        Args:
          data: The result of `_prepare`.
          training: Whether networks are applied as in training.
        """

    def _histograms(self, data: Any) -> dict[str, tf.Tensor]:
        """Returns the histograms of the debug mode, by name."""
        del data
        return {}

    def _whole_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        loss, extra = self._losses(batch.data, batch.training)
        (part,) = self._parts
        penalties = layer_utils.losses_of(part.trained)
        if penalties:
            loss += tf.add_n(penalties)
        self._summaries.write_losses(
            loss, extra._asdict(), self._histograms(batch.data)
        )
        return loss, {"extra": extra}


class OnPolicyAgent(RolloutAgent):
    """Base class of agents with an actor and a critic that learn on-policy.

    A subclass sets `_info`, the named tuple of the scalars in `LossInfo.extra`, and
    implements `_losses`.
    """

    # TF-Agents' losses of these names take other arguments.
    _hook_keywords: ClassVar[Mapping[str, Sequence[str]]] = {
        "value_estimation_loss": ("values", "returns", "weights"),
        "entropy_regularization_loss": ("distribution", "weights"),
    }

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        optimizer: types.Optimizer | None,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        on_policy: on_policy_options.OnPolicyOptions,
        agent: options.AgentOptions,
        *,
        use_gae: bool = True,
        use_td_lambda_return: bool = True,
        num_epochs: int = 1,
        normalize_advantages: bool = False,
        compute_value_and_advantage_in_train: bool = True,
        collect_update_period: int = 1,
        records_policy_state: bool = False,
        also_trained: Sequence[types.Network] = (),
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
            `[B]`. It may share layers with the actor; an update computes them once if
            both networks are `Sequential`s that begin with these layers.
          on_policy: The options of on-policy agents.
          agent: The options of all agents.
          use_gae: See `AdvantageEstimator`.
          use_td_lambda_return: See `AdvantageEstimator`.
          num_epochs: The number of updates in one call of `train`.
          normalize_advantages: Whether to normalize the advantages of one call of
            `train` to mean 0 and standard deviation 1.
          compute_value_and_advantage_in_train: Whether `train` computes values and
            advantages. If not, `preprocess_sequence` computes them, which minibatches
            need.
          collect_update_period: The number of calls of `train` between updates of the
            collect policy. If it is more than 1, this policy has its own copy of the
            actor.
          records_policy_state: Whether recurrent networks' states are part of the
            collected `policy_info`; see `PPOPolicy`.
          also_trained: Further networks that the loss trains.

        Raises:
          ValueError: The reward is not one scalar, a network's output does not match,
            the distributions have no entropy in closed form for an entropy bonus, or a
            number is out of range.
          TypeError: A network is missing, or a normalizer is of another kind.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, type(self).__name__)
        action_spec = tensor_spec.from_spec(action_spec)
        number_checks.check_integer(
            "num_epochs", num_epochs, 1, remedy="it is the number of updates a call"
        )
        networks = actor_and_critic.ActorAndCritic(
            time_step_spec,
            action_spec,
            actor_net,
            value_net,
            on_policy,
            agent,
            collect_update_period=collect_update_period,
            records_policy_state=records_policy_state,
        )
        if on_policy.entropy_regularization:
            networks.check_has_entropy(on_policy.entropy_regularization)
        collected = networks.collect_policy.trajectory_spec
        number = tf.TensorSpec([], tf.float32)
        computed = dict.fromkeys(("value_prediction", "return", "advantage"), number)
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(networks.policy)
            if on_policy.greedy_eval
            else networks.policy,
            networks.collect_policy,
            train_sequence_length=None,
            training_data_spec=None
            if compute_value_and_advantage_in_train
            else collected._replace(policy_info={**collected.policy_info, **computed}),
            **agent.of_base(),
        )
        self._networks = networks
        self._set_untracked("_on_policy", on_policy)
        self._set_untracked(
            "_advantage_estimator",
            advantages_lib.AdvantageEstimator(
                on_policy.discount_factor,
                on_policy.lambda_value,
                use_gae,
                use_td_lambda_return,
            ),
        )
        self._num_epochs = num_epochs
        self._normalize_advantages = normalize_advantages
        self._compute_in_train = compute_value_and_advantage_in_train
        self._set_only_part(
            [networks.actor_net, networks.value_net, *also_trained],
            optimizer,
            optimizers.all_to_norm(on_policy.gradient_clipping),
        )

    @property
    def actor_net(self) -> types.Network:
        """The actor network. It normalizes the observations itself."""
        return self._networks.actor_net

    @property
    def value_net(self) -> types.Network:
        """The value network. It normalizes the observations itself."""
        return self._networks.value_net

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
        return self._on_policy.update_normalizers_in_train

    def train(
        self,
        experience: types.NestedTensor,
        weights: tf.Tensor | None = None,
        **kwargs: Any,
    ) -> tf_agent.LossInfo:
        """Does `num_epochs` updates on the experience; see `TFAgent.train`.

        Args:
          experience: With `compute_value_and_advantage_in_train`, frames `[B, T + 1]`
            of `collect_data_spec`, in order of time; the last one only gives the last
            observation. Otherwise any frames `[B, T]` that `preprocess_sequence` has
            returned. Single frames `[B, 1]` are allowed, too, except for recurrent
            networks, which need sequences.
          weights: The weight of each example in the loss, a scalar, `[B]` or `[B, T]`.
          **kwargs: `policy_state`, the collect policy's state before the first frame,
            `[B, ...]`; by default the initial state.

        Returns:
          The loss before the last update.
        """
        loss_info = super().train(experience, weights, **kwargs)
        if self.update_normalizers_in_train:
            # The rewards as they were collected, after all uses of the statistics.
            self.update_normalizers(self._counted(experience))
        return loss_info

    def _counted(self, experience: Any) -> trajectory.Trajectory:
        """Returns the frames of `train`'s experience that the normalizers count."""
        frames = self._as_training_data(experience)
        if not self._compute_in_train:
            return frames
        return training_data.without_last(frames)

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        return self._measure_policy(batch.data, self._distribution(batch.data))

    def _measure_policy(
        self, data: training_data.TrainingData, distribution: Any
    ) -> dict[str, tf.Tensor]:
        """Returns the policy's mean entropy, and numbers of the critic.

        These are its explained variance, the mean size of its errors, `td_error`, and
        `positive_advantages`, the share of the advantages that are above 0 before they
        are normalized.
        """
        is_positive = tf.cast(data.raw_advantages > 0, tf.float32)
        errors = tf.abs(data.returns - data.old_values)
        numbers = {
            "explained_variance": losses.explained_variance(
                data.old_values, data.returns, data.valid
            ),
            "td_error": losses.masked_mean(errors, data.valid),
            "positive_advantages": losses.masked_mean(is_positive, data.valid),
        }
        entropy = self._networks.entropy(distribution)
        if entropy is not None:
            numbers["entropy"] = losses.masked_mean(entropy, data.valid)
        return numbers

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        return self._networks.values(time_step)

    def discount_factor(self) -> Any:
        """Returns gamma; see `TFAgent.discount_factor`."""
        return self._on_policy.discount_factor

    # Data.

    def _preprocess_sequence(self, experience: Any, policy_state: Any = ()) -> Any:
        """Returns training data, unless `train` computes values and advantages itself.

        Args:
          experience: Frames of `collect_data_spec` in order of time, `[B, T + 1, ...]`,
            or `[T + 1, ...]`. Only the observation and the step type of the last frame
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
            return accelerators.map_moved(lambda leaf: leaf[0], processed)
        frames = self._as_collected(experience)
        scaled = self._normalizers.normalize_rewards(frames)
        processed = self._with_advantages(scaled, policy_state)
        return processed._replace(reward=frames.reward[:, :-1])

    def _with_advantages(
        self, frames: trajectory.Trajectory, policy_state: Any
    ) -> trajectory.Trajectory:
        """Returns training data `[B, T]` for frames `[B, T + 1]`."""
        frames = advantages_lib.marked(frames)
        values = tf.stop_gradient(self._networks.values(frames, policy_state))
        _, _, next_time_steps = trajectory.to_transition(frames)
        frames = training_data.without_last(frames)
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

        For the other arguments see `compute_return_and_advantage` and
        `_with_advantages`. Override this method for estimates that depend on the
        actions.
        """
        del frames, policy_state
        return self.compute_return_and_advantage(next_time_steps, values)

    def compute_return_and_advantage(
        self, next_time_steps: ts.TimeStep, value_preds: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the returns and the advantages of steps, each `[B, T]`.

        Args:
          next_time_steps: The time steps after the steps, `[B, T]`, with normalized
            rewards.
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
    ) -> training_data.TrainingData:
        """Returns the training data that all epochs share.

        The arguments are as for `train`, with normalized rewards.
        """
        frames = self._as_training_data(experience)
        if self._compute_in_train:
            frames = self._with_advantages(frames, policy_state)
        old = self._networks.recorded(frames.policy_info["dist_params"])
        return training_data.of_frames(
            frames,
            self._log_probs(old, frames.action),
            weights,
            policy_state,
            self._normalize_advantages,
        )

    def _log_probs(self, distribution: Any, action: Any) -> tf.Tensor:
        """Returns the log-probabilities of actions, float32 `[B, T]`."""
        return recorded.log_probability(distribution, action, self.action_spec)

    # Training.

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        policy_state: Any = (),
        ends_iteration: bool = True,
    ) -> tf_agent.LossInfo:
        """Does an update in each epoch."""
        batch = self._batch(experience, weights, True, policy_state=policy_state)
        loss_info = self._repeat(lambda: self._update_parts(batch))
        if ends_iteration:
            self._after_epochs([batch.data])
        self._networks.update_collect_policy()
        return loss_info

    def _repeat(self, update: Callable[[], tf_agent.LossInfo]) -> tf_agent.LossInfo:
        """Calls `update` once for each epoch, in a loop of the graph if in a graph.

        Replicas cannot wait for each other in a loop of the graph.
        """
        if self._num_epochs == 1 or replicas.are_several():
            return [update() for _ in range(self._num_epochs)][-1]
        zero = tf.constant(0.0)
        parts = self._info(*[zero] * len(self._info._fields))
        _, loss_info = tf.while_loop(
            lambda epoch, _: epoch < self._num_epochs,
            lambda epoch, _: (epoch + 1, update()),
            (0, tf_agent.LossInfo(zero, parts)),
            maximum_iterations=self._num_epochs,
        )
        return loss_info

    def end_iteration(
        self, pieces: Sequence[Any], policy_state: types.NestedTensor = ()
    ) -> None:
        """Adapts the algorithm's coefficients at the end of an iteration.

        `train` calls this method itself. A loop that divides an iteration into
        minibatches calls `train(..., ends_iteration=False)`, and then this method after
        the last minibatch. By default there is nothing to adapt.

        Args:
          pieces: All experience of the iteration, as a sequence of arguments for
            `train`.
          policy_state: The `policy_state` of each piece; see `train`.
        """

    def _after_epochs(self, pieces: Sequence[training_data.TrainingData]) -> None:
        """Makes the algorithm's adaptations after the updates; none by default."""

    def _histograms(self, data: training_data.TrainingData) -> dict[str, tf.Tensor]:
        return {
            "advantages": data.advantages,
            "returns": data.returns,
            "value_preds": data.old_values,
            "action_log_prob_sample": data.old_log_probs,
        }

    def _policy_gradient_parts(
        self, distribution: Any, values: tf.Tensor, data: training_data.TrainingData
    ) -> dict[str, tf.Tensor]:
        """Returns the losses `-A log pi(a|s)`, of the values and of the entropy."""
        log_probs = self._log_probs(distribution, data.actions)
        return {
            "policy_gradient_loss": -self._mean(
                log_probs * data.advantages, data.weights
            ),
            "value_estimation_loss": self.value_estimation_loss(
                values=values,
                returns=data.returns,
                weights=data.weights,
            ),
            "entropy_regularization_loss": self.entropy_regularization_loss(
                distribution=distribution, weights=data.weights
            ),
        }

    def value_estimation_loss(
        self,
        values: tf.Tensor,
        returns: tf.Tensor,
        weights: tf.Tensor,
        old_value_predictions: tf.Tensor | None = None,
        value_clipping: types.FloatOrSchedule | None = None,
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
        return self._on_policy.value_pred_loss_coef * self._mean(error, weights)

    def entropy_regularization_loss(
        self, distribution: types.NestedDistribution, weights: tf.Tensor
    ) -> tf.Tensor:
        """Returns minus the weighted mean entropy, times the coefficient.

        Args:
          distribution: The nest of distributions of actions, batch shape `[B, T]`.
          weights: Float32 `[B, T]`.
        """
        coefficient = self._on_policy.entropy_regularization
        # A variable may change.
        if not (tf.is_tensor(coefficient) or coefficient):
            return tf.constant(0.0)
        entropy = self._networks.entropy(distribution)
        return -coefficient * self._mean(entropy, weights)

    def _mean(self, per_step: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns the weighted sum divided by the number of all frames, a scalar."""
        return losses.aggregate_losses(per_step, weights).weighted

    def _distribution(self, data: training_data.TrainingData) -> Any:
        """Returns the current policy's distributions, batch shape `[B, T]`."""
        return self._networks.distribution(data.time_steps, data.policy_state)

    def _outputs(
        self, data: training_data.TrainingData, training: bool
    ) -> tuple[Any, tf.Tensor]:
        """Returns the distributions as in `_distribution`, and the values `[B, T]`."""
        return self._networks.outputs(data.time_steps, data.policy_state, training)

    def _initialize(self) -> None:
        self._networks.initialize()

    def _variables(self) -> list[tf.Variable]:
        held = [*self._networks.all_variables(), *super()._variables()]
        return variables.as_tf_variables(held)
