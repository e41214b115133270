"""Parallelized Q-network: Q-learning without replay and without a target network.

The updates on a rollout of many environments minimise, over its steps, the mean of

    (G_t - Q(s_t, a_t))^2

with the returns of Peng's Q(lambda), computed with the weights that collected the
rollout,

    G_t = r_t + gamma d_t (lambda G_(t+1) + (1 - lambda) max_a Q(s_(t+1), a))

where d is the environment's discount: 0 at a termination, 1 at a time limit. Where an
episode or the rollout ends, lambda is 0. The layer normalization of the network keeps
the values in bounds. Gallici et al., "Simplifying deep temporal difference learning"
(2024, arXiv:2407.04811).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.on_policy import PqnAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = PqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QNetwork(
...         observation_spec, action_spec, fc_layer_params=(120, 84), layer_norm=True
...     ),
...     keras.optimizers.Adam(1e-3),
... )
>>> sorted(agent.training_data_spec.policy_info)
['return']
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    measures,
    normalization,
    options,
    tf_agent,
    updates,
)
from tfrl.agents.on_policy import advantages, on_policy_agent, training_data
from tfrl.losses import masking
from tfrl.networks import network as network_lib
from tfrl.networks import q_network as q_network_lib
from tfrl.policies import epsilon_greedy_policy, greedy_policy, q_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils import number_checks, summaries
from tfrl.utils.optimization import optimizers, schedules


class PqnLossInfo(NamedTuple):
    """Means over the steps of an update.

    Attributes:
      td_loss: The squared error, times the weights of the examples.
      q_value: The value of the actions taken.
    """

    td_loss: tf.Tensor
    q_value: tf.Tensor


class _Steps(NamedTuple):
    """The steps of an update.

    Attributes:
      frames: Frames with their returns, `[B, T, ...]`.
      weights: The weight of each example, a scalar, `[B]` or `[B, T]`, or None.
      policy_state: The collect policy's state before the first frame, `[B, ...]`.
    """

    frames: trajectory.Trajectory
    weights: tf.Tensor | None
    policy_state: Any


class PqnAgent(on_policy_agent.RolloutAgent):
    """A PQN agent, with CleanRL's discount, lambda and clipping.

    `preprocess_sequence` turns the frames of a rollout into training data. `train`
    takes these frames, or any minibatch of them, and does one update. A
    `train.OnPolicyLoop` makes all of these calls, with its epochs and minibatches.
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
          lambda_value: The lambda of the returns: 0 takes one-step targets, and 1 takes
            all rewards up to the end of the episode or of the rollout.
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
          TypeError: A setting has the wrong type.
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
        self._set_only_part(
            [self._q_network], optimizer, optimizers.all_to_norm(gradient_clipping)
        )

    def _preprocess_sequence(
        self, experience: Any, policy_state: Any = ()
    ) -> trajectory.Trajectory:
        """Returns training data: the frames with their returns.

        Args:
          experience: Frames `[B, T + 1, ...]` of `collect_data_spec` in order of time.
            Only the observation and the step type of the last frame are used.
          policy_state: The collect policy's state before the first frame, `[B, ...]`;
            `()` stands for the initial state.

        Returns:
          Frames `[B, T, ...]` of `training_data_spec`: the first `T`, with the entry
          'return' as their `policy_info`.
        """
        frames = advantages.marked(self._as_collected(experience))
        q_values = self._q_values(frames, policy_state)
        steps = training_data.without_last(frames)
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

    def _prepare(
        self, experience: Any, weights: tf.Tensor | None = None, policy_state: Any = ()
    ) -> _Steps:
        """Returns the steps of an update.

        Args:
          experience: Frames `[B, T, ...]` that `preprocess_sequence` has returned; for
            recurrent networks, sequences.
          weights: The weight of each example, a scalar, `[B]` or `[B, T]`.
          policy_state: The collect policy's state before the first frame, `[B, ...]`;
            `()` stands for the initial state.
        """
        return _Steps(self._as_training_data(experience), weights, policy_state)

    def _losses(self, data: _Steps, training: bool) -> tf_agent.LossInfo:
        """Returns the mean of `(G_t - Q(s_t, a_t))^2`; boundaries count as 0."""
        q_value, td_error, valid = self._predict(data, training)
        td_loss = losses.aggregate_losses(tf.square(td_error), data.weights).weighted
        if self.debug_summaries:
            summaries.summarize_histogram_dict(
                {"td_error": td_error, "q_values": q_value}, self.train_step_counter
            )
        extra = PqnLossInfo(td_loss=td_loss, q_value=losses.masked_mean(q_value, valid))
        return tf_agent.LossInfo(td_loss, extra)

    def _predict(
        self, data: _Steps, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the values of the actions, their errors, and a mask of real steps.

        The errors are 0 at boundaries. All are `[B, T]`.
        """
        valid = training_data.make_trajectory_mask(data.frames)
        q_values = self._q_values(data.frames, data.policy_state, training)
        q_value = losses.action_value(q_values, data.frames.action)
        td_error = data.frames.policy_info["return"] - q_value
        return q_value, masking.masked(td_error, valid), valid

    def _q_values(
        self,
        frames: trajectory.Trajectory | ts.TimeStep,
        policy_state: Any,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the values of all actions, float32 `[B, n]` or `[B, T, n]`.

        The values of invalid actions are the lowest number of the dtype.
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

    def _log_values(self) -> dict[str, tf.Tensor]:
        return measures.of_exploration(epsilon=self._epsilon_greedy)

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        return measures.of_values(*self._predict(batch.data))

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        return tf.reduce_max(self._q_values(time_step, ()), axis=-1)
