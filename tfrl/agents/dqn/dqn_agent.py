"""Deep Q-learning and Double DQN.

The loss of one transition (s, a, r, s') is L(y - Q(s, a)) with the target

    DQN:         y = r + gamma * d * max_a' Q_target(s', a')
    Double DQN:  y = r + gamma * d * Q_target(s', argmax_a' Q(s', a'))

where d is the environment's discount: 0 at a termination, 1 at a time limit. Mnih et
al., "Human-level control through deep reinforcement learning" (2015), algorithm 1; van
Hasselt et al., "Deep reinforcement learning with double Q-learning" (2016), equation 4.
A network with `NoisyDense` layers explores by their noise. The loss draws this noise as
well; the target network and the greedy policy act without noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    checks,
    measures,
    normalization,
    options,
    target_networks,
    td_losses,
    tf_agent,
    updates,
)
from tfrl.agents import transitions as transitions_lib
from tfrl.agents.dqn import exploration as exploration_lib
from tfrl.losses import masking
from tfrl.networks import utils as network_utils
from tfrl.networks.layers import noisy
from tfrl.policies import q_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, summaries, variables
from tfrl.utils.optimization import optimizers, schedules
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer

if TYPE_CHECKING:
    from tfrl.agents.dqn.munchausen import Munchausen


class DqnSettings(options.Settings, total=False):
    """The optional arguments of `DqnAgent` as keywords."""

    observation_and_action_constraint_splitter: types.Splitter
    epsilon_greedy: types.FloatOrSchedule | None
    boltzmann_temperature: types.FloatOrSchedule | None
    emit_log_probability: bool
    target_q_network: types.Network | types.Layer | None
    training_data_spec: types.NestedTensorSpec | None
    munchausen: Munchausen | None
    exploration: exploration_lib.Exploration | None


class DqnLossInfo(NamedTuple):
    """Details of the loss, per example and before weighting.

    Attributes:
      td_loss: The loss of each transition, `[B]`, zero where masked. For a recurrent
        network, it is summed over time.
      td_error: Target minus prediction, `[B]` (`[B, T-1]` for a recurrent network);
        prioritized replay takes its size as the priority.
    """

    td_loss: tf.Tensor
    td_error: tf.Tensor


def compute_td_targets(
    next_q_values: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
) -> tf.Tensor:
    """Returns `rewards + discounts * next_q_values`, without gradient.

    Scalars are broadcast to the shape of `next_q_values`, `[B]` or `[B, T]`.
    """
    ones = tf.ones_like(next_q_values)
    return losses.td_target(rewards * ones, discounts * ones, next_q_values)


class DqnAgent(tf_agent.TFAgent):
    """A DQN agent.

    A subclass overrides `_td_error` to change the loss, `_compute_next_q_values` to
    change the value of the next state, and `_values_of` if its network gives several
    numbers per action. It may set its attributes after `super().__init__(...)`, which
    calls no other hooks than `_check_action_spec`, `_check_network_output`,
    `_setup_policy` and `_get_target_updater`.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_td_loss": "override _td_error(predictions, transitions)",
    }

    # Whether the online network chooses the next action that the target rates.
    _double_q = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        observation_and_action_constraint_splitter: types.Splitter = None,
        epsilon_greedy: types.FloatOrSchedule | None = 0.1,
        n_step_update: int = 1,
        boltzmann_temperature: types.FloatOrSchedule | None = None,
        emit_log_probability: bool = False,
        target_q_network: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        td_errors_loss_fn: types.LossFn | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        training_data_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
        munchausen: Munchausen | None = None,
        exploration: exploration_lib.Exploration | None = None,
    ) -> None:
        """Builds the target network and the policies.

        `TdOptions` and `AgentOptions` explain the arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One scalar bounded integer spec with minimum 0.
          q_network: A `Network` (or Keras layer) that maps observations to values
            `[B, n]`.
          optimizer: The optimizer of the network's weights; None for an agent that
            never trains.
          observation_and_action_constraint_splitter: A function that splits an
            observation into the network's input and a mask `[B, n]` of the valid
            actions.
          epsilon_greedy: The probability of a random action when collecting: a number,
            a tensor or variable, a callable evaluated at each step, or a Keras schedule
            of the train step counter.
          boltzmann_temperature: The temperature for collecting with softmax(Q /
            temperature); it requires `epsilon_greedy=None`.
          emit_log_probability: Whether policies add the action's log-probability.
          target_q_network: The target network; a new copy of `q_network` if None.
          training_data_spec: See `TFAgent`.
          munchausen: The settings of Munchausen DQN; None is DQN.
          exploration: A function that makes `collect_policy` from a policy whose
            distributions have the Q-values as logits, such as a function that returns
            an `EpsilonGreedyPolicy` of it; `epsilon_greedy` has no effect then. None
            collects as `epsilon_greedy` or `boltzmann_temperature` say.

        Raises:
          ValueError: The action spec is not one scalar with minimum 0, the reward is
            not one scalar, the network does not return one value per action, there
            is not exactly one kind of exploration (`exploration` may be given with
            `epsilon_greedy`), the target network shares variables with the network or
            does not match it, or `munchausen` is given with n-step updates or double
            Q-learning.
        """
        time_step_spec = checks.as_time_step_spec(time_step_spec, "DQN")
        action_spec = tensor_spec.from_spec(action_spec)
        self._check_action_spec(action_spec)
        exploration_lib.check(epsilon_greedy, boltzmann_temperature, exploration)
        self._set_untracked("_exploration", exploration)
        train_step_counter = checks.as_train_step_counter(train_step_counter)
        td = options.TdOptions(
            target_update_tau=target_update_tau,
            target_update_period=target_update_period,
            td_errors_loss_fn=td_errors_loss_fn,
            gamma=gamma,
            reward_scale_factor=reward_scale_factor,
            gradient_clipping=gradient_clipping,
            n_step_update=n_step_update,
        )
        agent = options.AgentOptions(
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
            seed=seed,
            observation_normalizer=observation_normalizer,
            reward_normalizer=reward_normalizer,
        )
        options.warn_of_growing_values(type(self), td)

        self._observation_and_action_constraint_splitter = (
            observation_and_action_constraint_splitter
        )
        observation_spec, _ = self._split(time_step_spec.observation)
        q_network, target_q_network = normalization.normalized_networks(
            observation_normalizer, observation_spec, q_network, target_q_network
        )
        self._q_network, self._target_q_network = target_networks.with_target(
            q_network, target_q_network, "TargetQNetwork", observation_spec
        )
        self._check_network_output(self._q_network, "q_network")
        self._check_network_output(self._target_q_network, "target_q_network")
        self._recurrent = bool(tf.nest.flatten(self._q_network.state_spec))
        self._n_step_update = td.n_step_update
        self._set_untracked("_munchausen", munchausen)
        if munchausen is not None:
            self._check_munchausen(td.n_step_update)

        # If these are variables, the policies track them.
        self._set_untracked(
            "_epsilon_greedy",
            None
            if exploration is not None
            else schedules.follow("epsilon_greedy", epsilon_greedy, train_step_counter),
        )
        self._set_untracked(
            "_boltzmann_temperature",
            schedules.follow(
                "boltzmann_temperature", boltzmann_temperature, train_step_counter
            ),
        )
        self._policy_seed = agent.seed
        policy, collect_policy = self._setup_policy(
            time_step_spec,
            action_spec,
            self._boltzmann_temperature,
            emit_log_probability,
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            train_sequence_length=None if self._recurrent else td.n_step_update + 1,
            training_data_spec=training_data_spec,
            **agent.of_base(),
        )
        self._set_only_part(
            [self._q_network], optimizer, optimizers.each_to_norm(td.gradient_clipping)
        )
        self._td_errors_loss_fn = td.td_errors_loss_fn or common.element_wise_huber_loss
        self._gamma = td.gamma
        self._reward_scale_factor = td.reward_scale_factor
        self._target_pairs = [(self._q_network, self._target_q_network)]
        self._update_target = self._get_target_updater(
            td.target_update_tau, td.target_update_period
        )
        self._read = transitions_lib.Reader(self.data_context, td, self._recurrent)

    # Hooks that the constructor calls.

    def _check_action_spec(self, action_spec: Any) -> None:
        """Raises a ValueError unless DQN can handle the spec; counts the actions."""
        specs = tf.nest.flatten(action_spec)
        if len(specs) != 1 or specs[0].shape.rank != 0 or not specs[0].dtype.is_integer:
            raise ValueError(
                "action_spec: DQN expects one scalar integer action, got "
                f"{action_spec}; train continuous actions with agents.ReinforceAgent, "
                "or make them discrete with "
                "environments.wrappers.ActionDiscretizeWrapper."
            )
        (spec,) = specs
        if not isinstance(spec, tensor_spec.BoundedTensorSpec):
            raise ValueError(
                f"action_spec: DQN expects a BoundedTensorSpec, got {spec}; give the "
                "actions bounds, from 0 to n - 1."
            )
        if spec.minimum != 0:
            raise ValueError(
                f"action_spec: DQN expects actions that count from 0, got minimum "
                f"{spec.minimum}; shift them with "
                "tfrl.environments.wrappers.ActionOffsetWrapper."
            )
        self._num_actions = int(spec.maximum) + 1

    def _check_network_output(self, net: Any, label: str) -> None:
        """Raises a ValueError unless the network gives one value per action.

        If a subclass overrides `_values_of`, several numbers per action are allowed,
        too.
        """
        spec = net.create_variables()
        shape = (self._num_actions,)
        if self._reads_values() and isinstance(spec, tf.TensorSpec):
            shape += tuple(spec.shape[1:])
        network_utils.check_single_floating_network_output(spec, shape, label=label)

    def _setup_policy(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        boltzmann_temperature: Any,
        emit_log_probability: bool,
    ) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
        """Returns the policy to deploy and the collecting policy."""
        make_policy: Callable[..., q_policy.QPolicy] = q_policy.QPolicy
        if self._reads_values():
            make_policy = functools.partial(_PolicyOfValues, self._values_of)

        def make(training: bool) -> q_policy.QPolicy:
            return make_policy(
                time_step_spec,
                action_spec,
                self._q_network,
                emit_log_probability,
                self._observation_and_action_constraint_splitter,
                validate_action_spec_and_network=not self._reads_values(),
                seed=self._policy_seed,
                training=training,
            )

        policy = make(training=False)
        return exploration_lib.make_policies(
            policy,
            make(training=True) if noisy.is_noisy(self._q_network) else policy,
            self._epsilon_greedy,
            boltzmann_temperature,
            self._policy_seed,
            self._exploration,
        )

    def _check_munchausen(self, n_step_update: int) -> None:
        """Raises a ValueError if Munchausen DQN is not defined for the agent."""
        if n_step_update != 1:
            raise ValueError(
                f"n_step_update: expected 1 with munchausen, got {n_step_update}: a "
                "window has the action of its first step alone, and each reward needs "
                "its own; leave one of them out."
            )
        if self._double_q:
            raise ValueError(
                "munchausen: expected None with double Q-learning, got "
                f"{self._munchausen}: its targets have the soft value of the next "
                "state, and no best action; use DqnAgent, or double_q=False."
            )

    def _get_target_updater(
        self, tau: float = 1.0, period: int | None = 1
    ) -> Callable[[], Any]:
        """Returns a callable that `train` calls after each update of the weights."""
        return updates.make_updater(self._target_pairs, tau, period)

    # Training.

    def _whole_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        info = self._loss(
            batch.data,
            td_errors_loss_fn=self._td_errors_loss_fn,
            gamma=self._gamma,
            reward_scale_factor=self._reward_scale_factor,
            weights=batch.weights,
            training=batch.training,
        )
        loss, extra = checks.pair(f"{type(self).__name__}._loss", info, "a LossInfo")
        return loss, {"extra": extra}

    # TF-Agents' order of arguments; the base class calls this method by keyword.
    def _loss(  # type: ignore[override]
        self,
        experience: Any,
        td_errors_loss_fn: Callable | None = None,
        gamma: Any = None,
        reward_scale_factor: Any = None,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the mean loss of the transitions; masked transitions count as 0.

        Args:
          experience: See `TFAgent.train`.
          td_errors_loss_fn: A loss of (targets, predictions); the agent's if None.
          gamma: The discount factor; the agent's if None.
          reward_scale_factor: The factor for the rewards; the agent's if None.
          weights: See `TFAgent.train`.
          training: Whether the Q-network is applied as in training.
        """
        transitions = self._transitions(experience, gamma, reward_scale_factor)
        valid = transitions.valid
        transitions = transitions._replace(
            loss_fn=functools.partial(
                td_losses.per_transition,
                td_errors_loss_fn or self._td_errors_loss_fn,
                valid=valid,
                agent=type(self).__name__,
            )
        )
        if self._munchausen is not None:
            bonus = masking.masked(self._munchausen_bonus(transitions), valid)
            transitions = transitions._replace(reward=transitions.reward + bonus)
        predictions = self._predictions(transitions, training)
        # Read before the network is applied to another input, because the losses may
        # include penalties on the activations.
        regularization_losses = self._q_network.losses
        td_loss, td_error = checks.pair(
            f"{type(self).__name__}._td_error",
            self._td_error(predictions, transitions),
            "the loss and the error of each transition",
        )
        self._check_per_transition(valid.shape, loss=td_loss, error=td_error)
        td_loss = transitions.per_example(td_loss)
        td_error = masking.masked(td_error, valid)
        aggregated = losses.aggregate_losses(
            td_loss, weights, regularization_loss=regularization_losses
        )
        self._write_loss(aggregated, td_loss, td_error)
        return tf_agent.LossInfo(aggregated.total_loss, DqnLossInfo(td_loss, td_error))

    # The seam for other losses.

    def _td_error(
        self, predictions: Any, transitions: transitions_lib.Transitions
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss and the error of each transition; `_loss` masks them.

        With a recurrent network, all shapes are `[B, T - 1]` instead of `[B]`, except
        that `transitions.next_time_step` holds all `T` steps. Apply a network to all of
        them and pass its output to `transitions.at_next`.

        Args:
          predictions: The result of `_compute_q_values`: Q of the actions taken, `[B]`,
            or `[B, m]` if the network gives `m` numbers per action.
          transitions: The transitions, with the rewards and discounts of n-step
            returns.

        Returns:
          The loss `[B]`, which is differentiated, and the error `[B]`, which sets the
          priorities of prioritized replay.
        """
        next_q_values = self._next_output(transitions)
        targets = losses.td_target(
            transitions.reward, transitions.discount, next_q_values
        )
        td_error = targets - predictions
        td_loss = transitions.loss_fn(targets, predictions)
        if self.debug_summaries:
            summaries.summarize_tensor_dict(
                {
                    "loss/q_values": predictions,
                    "loss/next_q_values": next_q_values,
                    "loss/diff_q_values": predictions - next_q_values,
                },
                step=self.train_step_counter,
            )
        return td_loss, td_error

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        """Returns the values that a network's output encodes; the output by default.

        The policies and the targets choose actions by these values, and the log shows
        them. A subclass whose network gives `m` numbers per action overrides this
        method.

        Args:
          network_output: `[B, n]` or `[B, n, m]` for all actions; `[B]` or `[B, m]` for
            the actions taken. It may have further dimensions in front.

        Returns:
          `[B, n]`, or `[B]` for the actions taken.
        """
        return network_output

    def _compute_q_values(
        self, time_steps: ts.TimeStep, actions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Returns the Q-network's output for the actions, `[B]` or `[B, m]`."""
        output = self._apply_network(self._q_network, time_steps, training)
        return losses.action_value(output, actions)

    def _compute_next_q_values(
        self, next_time_steps: ts.TimeStep, info: Any
    ) -> tf.Tensor:
        """Returns the target network's output for its best action, `[B]` or `[B, m]`.

        Args:
          next_time_steps: The `TimeStep` after the actions; see `_td_error` about
            recurrent networks.
          info: The `PolicyStep.info` of the actions.
        """
        del info
        target = self._apply_network(self._target_q_network, next_time_steps)
        judge = target
        if self._double_q:
            judge = self._apply_network(self._q_network, next_time_steps)
        return self._at_best_actions(target, judge, next_time_steps)

    def _at_best_actions(
        self, output: tf.Tensor, judge: tf.Tensor, time_step: ts.TimeStep
    ) -> tf.Tensor:
        """Returns a network's output for the best valid actions, `[B]` or `[B, m]`.

        With `munchausen`, it is the soft value of all valid actions instead.

        Args:
          output: The output of all actions, `[B, n]` or `[B, n, m]`.
          judge: The output, shaped like `output`, whose values determine the best
            actions.
          time_step: The time step to which `output` and `judge` belong.
        """
        values = self._possible(self._values_of(judge), time_step)
        if self._munchausen is not None:
            return losses.munchausen_value(output, values, self._munchausen.temperature)
        if values is output:
            return losses.best_action_value(output)
        return losses.action_value(output, tf.argmax(values, -1, tf.int32))

    def _apply_network(
        self,
        network: Any,
        time_step: ts.TimeStep,
        training: bool = False,
        **inputs: Any,
    ) -> tf.Tensor:
        """Returns a network's output for a time step, `[B, n]` or `[B, n, m]`.

        The network sees the observation without the mask of valid actions. `inputs` are
        further arguments of the network, such as the `network_state` `[B, ...]` from
        which a recurrent network starts; by default it starts from its initial state.
        """
        observation, _ = self._split(time_step.observation)
        output, _ = network(
            observation, step_type=time_step.step_type, training=training, **inputs
        )
        return output

    def _predictions(
        self, transitions: transitions_lib.Transitions, training: bool = False
    ) -> tf.Tensor:
        """Returns `_compute_q_values` of the actions taken, `[B]` or `[B, m]`."""
        return self._compute_q_values(
            transitions.time_step, transitions.action, training=training
        )

    def _next_output(self, transitions: transitions_lib.Transitions) -> tf.Tensor:
        """Returns `_compute_next_q_values` of the next steps, `[B]` or `[B, m]`."""
        output = self._compute_next_q_values(
            transitions.next_time_step, transitions.info
        )
        return transitions.at_next(output)

    # Plumbing.

    def _transitions(
        self, experience: Any, gamma: Any = None, reward_scale_factor: Any = None
    ) -> transitions_lib.Transitions:
        """Returns the transitions to learn from, `[B]`, or `[B, T - 1]`."""
        return self._read(experience, gamma, reward_scale_factor)

    def _munchausen_bonus(self, transitions: transitions_lib.Transitions) -> tf.Tensor:
        """Returns the log-probabilities that Munchausen DQN adds to rewards, `[B]`."""
        output = self._apply_network(self._target_q_network, transitions.time_step)
        values = self._possible(self._values_of(output), transitions.time_step)
        return self._munchausen.bonus(values, transitions.action)

    def _reads_values(self) -> bool:
        """Whether a subclass says how the network's output encodes values."""
        return type(self)._values_of is not DqnAgent._values_of

    def _possible(self, q_values: tf.Tensor, time_step: ts.TimeStep) -> tf.Tensor:
        """Returns the values `[B, n]`, with the dtype's minimum for invalid actions."""
        _, mask = self._split(time_step.observation)
        if mask is None:
            return q_values
        return tf.where(tf.cast(mask, tf.bool), q_values, q_values.dtype.min)

    def _split(self, observation: Any) -> tuple[Any, Any]:
        """Splits the observation into the network's input and the mask (or None)."""
        splitter = self._observation_and_action_constraint_splitter
        return (observation, None) if splitter is None else splitter(observation)

    def _check_per_transition(self, shape: tf.TensorShape, **values: tf.Tensor) -> None:
        """Raises a ValueError unless there is one loss and one error per transition."""
        for name, value in values.items():
            if not value.shape.is_compatible_with(shape):
                raise ValueError(
                    f"{type(self).__name__}._td_error: expected a loss and an error "
                    f"for each transition, shape {shape}, got a {name} of shape "
                    f"{value.shape}; add up or average over the further dimensions, "
                    "such as quantiles."
                )

    def _variables(self) -> list[tf.Variable]:
        pairs = [*self._q_network.variables, *self._target_q_network.variables]
        return variables.as_tf_variables([*pairs, *super()._variables()])

    def _log_values(self) -> dict[str, tf.Tensor]:
        return measures.of_exploration(
            epsilon=self._epsilon_greedy, temperature=self._boltzmann_temperature
        )

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns `measures.of_values` of `_values_of` the actions taken.

        If the network gives several numbers per action and `_values_of` is not
        overridden, there is only the `td_error`.
        """
        (part,) = self._parts
        _, details = part.compute(batch)
        transitions = self._transitions(batch.data)
        td_error, valid = details["extra"].td_error, transitions.valid
        predictions = self._predictions(transitions)
        q_values = self._values_of(predictions)
        if q_values.shape.rank != valid.shape.rank:
            return {"td_error": losses.masked_mean(tf.abs(td_error), valid)}
        numbers = measures.of_values(q_values, td_error, valid)
        # Errors of other predictions are in other units than the values.
        if q_values is not predictions:
            del numbers["explained_variance"]
        return numbers

    def _state_values(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        output = self._apply_network(self._q_network, time_step)
        values = self._possible(self._values_of(output), time_step)
        return tf.reduce_max(values, axis=-1) if values.shape.rank == 2 else None

    def _write_loss(
        self,
        aggregated: losses.AggregatedLosses,
        td_loss: tf.Tensor,
        td_error: tf.Tensor,
    ) -> None:
        """Writes the scalar losses, and in debug mode histograms of losses and errors.

        The tags are TF-Agents'.
        """
        if not self.summaries_enabled:
            return
        reg_loss = aggregated.regularization
        summaries.summarize_scalar_dict(
            {
                "td_loss": aggregated.weighted,
                "reg_loss": 0.0 if reg_loss is None else reg_loss,
                "total_loss": aggregated.total_loss,
            },
            step=self.train_step_counter,
        )
        if self.debug_summaries:
            summaries.summarize_tensor_dict(
                {"loss/td_error": td_error, "loss/td_loss": td_loss},
                step=self.train_step_counter,
            )


class DdqnAgent(DqnAgent):
    """A Double DQN agent: the target network evaluates the online network's choice."""

    _double_q = True


# TF-Agents' name of double DQN on a `DuelingQNetwork`.
D3qnAgent = DdqnAgent


class _PolicyOfValues(q_policy.QPolicy):
    """Acts by the values that an agent reads from the network's output."""

    def __init__(self, values_of: Callable, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read = values_of

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        return self._read(network_output)
