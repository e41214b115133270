"""Parallelized Q-network: Q-learning without replay and without a target network.

The updates on a rollout of many environments minimise, over its steps, the mean of

    (G_t - Q(s_t, a_t))^2

with the returns of Peng's Q(lambda), which the weights give that collected the rollout,

    G_t = r_t + gamma d_t (lambda G_(t+1) + (1 - lambda) max_a Q(s_(t+1), a))

where d is the environment's discount: 0 at a termination, 1 at a time limit. Where an
episode or the rollout ends, lambda is 0. What keeps the values in bounds is the layer
normalization of the network. Gallici et al., "Simplifying deep temporal difference
learning" (2024, arXiv:2407.04811).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks, data_converter, normalization, options, tf_agent
from tfrl.agents.on_policy import advantages, training_data
from tfrl.compilation import accelerators
from tfrl.losses import masking
from tfrl.networks import network as network_lib
from tfrl.networks import q_network as q_network_lib
from tfrl.policies import epsilon_greedy_policy, greedy_policy, q_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import number_checks, optimizers, schedules, summaries, variables


class PqnLossInfo(NamedTuple):
    """Means over the steps of an update.

    Attributes:
      td_loss: The squared error, times the weights of the examples.
      q_value: The value of the actions taken.
    """

    td_loss: tf.Tensor
    q_value: tf.Tensor


class PqnAgent(tf_agent.TFAgent):
    """A PQN agent, with CleanRL's discount, lambda and clipping.

    `preprocess_sequence` turns the frames of a rollout into training data. `train`
    takes these frames, or any minibatch of them, and does one update. A
    `train.OnPolicyLoop` does all that, with its epochs and minibatches.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        *,
        epsilon_greedy: types.FloatOrSchedule = 0.1,
        gamma: float = 0.99,
        lambda_value: float = 0.65,
        gradient_clipping: float | None = 10.0,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        **settings: Unpack[options.AgentSettings],
    ) -> None:
        """Builds the policies and the optimizer's variables.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One scalar bounded integer spec with minimum 0.
          q_network: A `Network` (or Keras layer) that maps observations to values
            `[B, n]`, with layer normalization.
          optimizer: The optimizer of the network's weights; None for an agent that
            never trains.
          epsilon_greedy: The probability of a random action when collecting: a number,
            a tensor or variable, a callable evaluated at each step, or a Keras schedule
            of the train step counter.
          gamma: The discount factor.
          lambda_value: The lambda of the returns: 0 takes one-step targets, 1 the
            rewards up to the end of the episode or of the rollout.
          gradient_clipping: The largest norm of all gradients together; None does not
            clip.
          observation_and_action_constraint_splitter: A function that splits an
            observation into the network's input and a mask `[B, n]` of the valid
            actions.
          **settings: Fields of `AgentOptions`.

        Raises:
          ValueError: The action spec is not one scalar with minimum 0, the reward is
            not one scalar, the network does not return one value per action, or a
            number is out of range.
          TypeError: A setting is of a wrong type.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "PQN")
        action_spec = tensor_spec.from_spec(action_spec)
        q_network_lib.validate_specs(action_spec)
        checks.check_gamma(gamma)
        checks.check_gradient_clipping(gradient_clipping)
        for name, value, remedy in (
            ("epsilon_greedy", epsilon_greedy, "0 never explores, 1 always does"),
            ("lambda_value", lambda_value, "0.65 and 0.95 are usual"),
        ):
            number_checks.check_number(name, value, 0.0, 1.0, remedy=remedy)
        counter = checks.as_train_step_counter(settings.get("train_step_counter"))
        settings["train_step_counter"] = counter
        (agent,) = options.from_settings(type(self), settings, [options.AgentOptions])

        splitter = observation_and_action_constraint_splitter
        observation_spec = policy_utils.network_observation_spec(
            time_step_spec.observation, splitter
        )
        (q_network,) = normalization.normalized_networks(
            agent.observation_normalizer, observation_spec, q_network
        )
        self._q_network = network_lib.as_network(q_network, observation_spec)
        policy = q_policy.QPolicy(
            time_step_spec,
            action_spec,
            self._q_network,
            observation_and_action_constraint_splitter=splitter,
            seed=agent.seed,
        )
        # If it is a variable, the policy tracks it.
        self._set_untracked(
            "_epsilon_greedy",
            schedules.follow("epsilon_greedy", epsilon_greedy, counter),
        )
        collect_policy = epsilon_greedy_policy.EpsilonGreedyPolicy(
            policy, epsilon=self._epsilon_greedy, seed=agent.seed
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(policy),
            collect_policy,
            train_sequence_length=None,
            training_data_spec=collect_policy.trajectory_spec._replace(
                policy_info={"return": tf.TensorSpec([], tf.float32)}
            ),
            **agent.of_base(),
        )
        self._gamma = gamma
        self._lambda_value = lambda_value
        self._splitter = splitter
        self._optimizer = optimizers.OptimizerAdapter(
            optimizer,
            self._q_network.trainable_variables,
            optimizers.all_to_norm(gradient_clipping),
        )
        self._as_collected = data_converter.AsTrajectory(self.collect_data_context)
        self._as_training_data = data_converter.AsTrajectory(self.data_context)

    def _preprocess_sequence(
        self, experience: Any, policy_state: Any = ()
    ) -> trajectory.Trajectory:
        """Returns training data: the frames with their returns.

        Args:
          experience: Frames `[B, T + 1, ...]` of `collect_data_spec` in order of time.
            Of the last frame, only the observation and the step type are used.
          policy_state: The collect policy's state before the first frame, `[B, ...]`;
            `()` stands for the initial state.

        Returns:
          Frames `[B, T, ...]` of `training_data_spec`: the first `T`, with the entry
          'return' as their `policy_info`.
        """
        frames = advantages.marked(self._as_collected(experience))
        if frames.discount.shape[1] == 1:
            raise ValueError(
                "experience: expected at least 2 frames [B, T + 1, ...], of which the "
                "last gives the last observation, got 1; collect more of them."
            )
        q_values = self._q_values(frames, policy_state)
        steps = accelerators.map_moved(lambda leaf: leaf[:, :-1], frames)
        reward = self._normalizers.normalize_rewards(steps).reward
        # A boundary frame holds the last observation of the episode before it.
        returns = losses.lambda_returns(
            r_t=tf.transpose(tf.cast(reward, tf.float32)),
            discount_t=self._gamma * tf.transpose(steps.discount),
            v_t=tf.transpose(tf.reduce_max(q_values[:, 1:], axis=-1)),
            lambda_=self._lambda_value,
            continues_t=tf.transpose(steps.next_step_type == ts.StepType.MID),
        )
        return steps._replace(policy_info={"return": tf.transpose(returns)})

    def _train(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        policy_state: Any = (),
    ) -> tf_agent.LossInfo:
        checked, extra = self._gradient_step(
            lambda: self._loss(experience, weights, True, policy_state),
            self._q_network.trainable_variables,
            self._optimizer,
            self._q_network.non_trainable_variables,
        )
        self._count(checked)
        return tf_agent.LossInfo(checked, extra)

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
        policy_state: Any = (),
    ) -> tf_agent.LossInfo:
        """Returns the mean loss of the frames; boundaries count as 0.

        Args:
          experience: Frames `[B, T, ...]` that `preprocess_sequence` has returned; for
            recurrent networks, sequences.
          weights: The weight of each example, a scalar, `[B]` or `[B, T]`.
          training: Whether the network is applied as in training.
          policy_state: The collect policy's state before the first frame, `[B, ...]`;
            `()` stands for the initial state.
        """
        q_value, td_error, valid = self._predict(experience, policy_state, training)
        aggregated = losses.aggregate_losses(
            tf.square(td_error), weights, regularization_loss=self._q_network.losses
        )
        extra = PqnLossInfo(
            td_loss=aggregated.weighted, q_value=losses.masked_mean(q_value, valid)
        )
        if self.summaries_enabled:
            summaries.summarize_scalar_dict(
                {**extra._asdict(), "total_loss": aggregated.total_loss},
                step=self.train_step_counter,
            )
        if self.debug_summaries:
            summaries.summarize_histogram_dict(
                {"td_error": td_error, "q_values": q_value}, self.train_step_counter
            )
        return tf_agent.LossInfo(aggregated.total_loss, extra)

    def _predict(
        self, experience: Any, policy_state: Any = (), training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the values of the actions, their errors, and what is no boundary.

        The errors are 0 at boundaries. All are `[B, T]`; the arguments are as for
        `_loss`.
        """
        frames = self._as_training_data(experience)
        valid = training_data.make_trajectory_mask(frames)
        q_values = self._q_values(frames, policy_state, training)
        q_value = losses.action_value(q_values, frames.action)
        td_error = frames.policy_info["return"] - q_value
        return q_value, masking.masked(td_error, valid), valid

    def _q_values(
        self,
        frames: trajectory.Trajectory,
        policy_state: Any,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the values of all actions, float32 `[B, T, n]`.

        Those of invalid actions are the least number.
        """
        observation, mask = frames.observation, None
        if self._splitter is not None:
            observation, mask = self._splitter(observation)
        q_values, _ = self._q_network(
            observation,
            step_type=frames.step_type,
            network_state=policy_state,
            training=training,
        )
        q_values = tf.cast(q_values, tf.float32)
        return q_values if mask is None else policy_utils.mask_values(q_values, mask)

    def diagnose(self, experience: Any = None) -> dict[str, tf.Tensor]:
        """Returns the learning rate, epsilon, and numbers of a batch.

        Args:
          experience: See `train`; None leaves out the numbers of a batch.

        Returns:
          Scalars: `learning_rate` and `epsilon`; of a batch, `q_value`, the mean value
          of the actions taken, `td_error`, the mean distance to their returns, and
          `gradient_norm`, the norm of the gradient of all weights before clipping.
        """
        given = {
            "learning_rate": self._optimizer.learning_rate(),
            "epsilon": schedules.current_value(self._epsilon_greedy),
        }
        numbers = {
            name: tf.cast(value, tf.float32)
            for name, value in given.items()
            if value is not None
        }
        if experience is None:
            return numbers
        with tf.summary.record_if(False), tf.GradientTape() as tape:
            loss, extra = self.loss(experience)
        gradients = tape.gradient(loss, self._q_network.trainable_variables)
        _, td_error, valid = self._predict(experience)
        return {
            **numbers,
            "q_value": extra.q_value,
            "td_error": losses.masked_mean(tf.abs(td_error), valid),
            "gradient_norm": tf.cast(tf.linalg.global_norm(gradients), tf.float32),
        }

    def _variables(self) -> list[tf.Variable]:
        return variables.as_tf_variables(
            [*self._q_network.variables, *self._optimizer.variables()]
        )
