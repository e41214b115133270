"""QT-Opt: deep Q-learning of continuous actions, without an actor.

For a transition (s, a, r, s') the network minimises L(y - Q(s, a)) with the target

    y = r + gamma * d * min(Q_1(s', a'), Q_2(s', a'))
    a' = argmax_a Q_target(s', a), by the cross-entropy method

where d is the environment's discount. `Q_target` follows Q slowly, `Q_1` is a copy of
`Q_target` and `Q_2` a copy of the former `Q_1`, taken every
`delayed_target_update_period` train steps. Kalashnikov et al., "QT-Opt: scalable deep
reinforcement learning for vision-based robotic manipulation" (2018, arXiv:1806.10293),
sections 4.1 and 4.2 and appendix F, where the networks are averages of the weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    data_converter,
    measures,
    normalization,
    observation_embedding,
    options,
    target_networks,
    transitions,
    updates,
)
from tfrl.networks import network as network_lib
from tfrl.policies import epsilon_greedy_policy, greedy_policy, qtopt_cem_policy
from tfrl.policies.samplers import qtopt_cem_actions_sampler as sampling
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common
from tfrl.utils.optimization import schedules
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import TensorNormalizer


class QtOptLossInfo(NamedTuple):
    """Details of the loss.

    Attributes:
      td_loss: The loss of each transition before weighting, `[B]`, zero where masked.
      td_error: Target minus prediction, `[B]`, zero where masked.
    """

    td_loss: tf.Tensor
    td_error: tf.Tensor


class QtOptAgent(actor_critic.ActorCriticAgent):
    """A QT-Opt agent, which acts by the cross-entropy method on its target network."""

    _info = QtOptLossInfo

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        actions_sampler: sampling.ActionsSampler,
        epsilon_greedy: types.FloatOrSchedule = 0.1,
        n_step_update: int = 1,
        emit_log_probability: bool = False,
        in_graph_bellman_update: bool = True,
        init_mean_cem: types.NestedArray | None = None,
        init_var_cem: types.NestedArray | None = None,
        num_samples_cem: int = 32,
        num_elites_cem: int = 4,
        num_iter_cem: int = 3,
        target_q_network: types.Network | types.Layer | None = None,
        target_update_tau: float = 1.0,
        target_update_period: int | None = 1,
        enable_td3: bool = True,
        target_q_network_delayed: types.Network | types.Layer | None = None,
        target_q_network_delayed_2: types.Network | types.Layer | None = None,
        delayed_target_update_period: int = 5,
        td_errors_loss_fn: types.LossFn | None = None,
        auxiliary_loss_fns: Sequence[Callable[..., Any]] | None = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        gradient_clipping: float | None = None,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        info_spec: types.NestedTensorSpec | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
        observation_normalizer: TensorNormalizer | None = None,
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        """Builds the target networks and the policies.

        The defaults are TF-Agents'. `TdOptions` and `AgentOptions` explain the
        arguments that are not listed here.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs that `actions_sampler` takes.
          q_network: A `Network` (or Keras layer) that maps pairs of observations and
            actions to values `[B]`, such as a `CriticNetwork`, without a state.
          optimizer: The optimizer of the network's weights; None for an agent that
            never trains.
          actions_sampler: Draws the actions of the cross-entropy method.
          epsilon_greedy: The probability of a random action when collecting; see
            `DqnAgent`.
          emit_log_probability: Whether policies add the action's log-probability.
          in_graph_bellman_update: Whether the loss computes the value of the next
            state. If not, `train` takes single frames, `T = 1`, whose policy info has
            it as "target_q".
          init_mean_cem: See `init_mean` of `CEMPolicy`.
          init_var_cem: See `init_var` of `CEMPolicy`.
          num_samples_cem: The number of samples in each iteration of the search.
          num_elites_cem: The number of samples to which the distribution is fitted.
          num_iter_cem: The number of iterations of the search.
          target_q_network: The target network; a new copy if None.
          enable_td3: Whether targets are the minimum of the delayed networks' values,
            not the value of the target network.
          target_q_network_delayed: The first delayed network; a new copy if None.
          target_q_network_delayed_2: The second delayed network; a new copy if None.
          delayed_target_update_period: The number of train steps between copies of the
            target network to the first delayed one, and of the first to the second.
          auxiliary_loss_fns: Functions of `network` and of a `transition` that return
            losses `[B]` and a scalar, such as a penalty, which are added to the loss.
          info_spec: The specs of the policy's info; only without
            `in_graph_bellman_update`, where the default is `{"target_q": float32}`.

        Raises:
          ValueError: A number is out of range, a network does not fit the specs or
            shares variables with its target, or there is a delayed network without
            `enable_td3`.
          NotImplementedError: The network has a state.
        """
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
        checks.check_target_update(1.0, delayed_target_update_period)
        time_step_spec = checks.as_time_step_spec(time_step_spec, "QT-Opt")
        delayed = [target_q_network_delayed, target_q_network_delayed_2]
        if not enable_td3 and delayed != [None, None]:
            raise ValueError(
                "target_q_network_delayed, target_q_network_delayed_2: expected None "
                "with enable_td3=False, which has no delayed networks; leave them out."
            )
        embedding = observation_embedding.ObservationEmbedding(
            None, time_step_spec.observation, observation_normalizer
        )
        specs = (embedding.spec, tensor_spec.from_spec(action_spec))
        given = [q_network, target_q_network, *(delayed if enable_td3 else [])]
        trained, *given = normalization.normalized_critics(
            embedding.normalizer, specs, *given
        )
        names = ("TargetQNetwork", "TargetQNetworkDelayed", "TargetQNetworkDelayed2")
        pairs = []
        for target, label in zip(given, names, strict=False):
            trained, target = target_networks.with_target(trained, target, label, specs)
            pairs.append((trained, target))
        checks.check_not_recurrent([trained], "QT-Opt")
        targets = [target for _, target in pairs]
        self._q_network, self._target_q_network = trained, targets[0]
        self._target_q_network_delayed = targets[1] if enable_td3 else None
        self._target_q_network_delayed_2 = targets[2] if enable_td3 else None
        self._delayed_target_update_period = delayed_target_update_period

        info: Any = {"target_q": tf.TensorSpec([], tf.float32)}
        info = info if info_spec is None else info_spec
        self._search = qtopt_cem_policy.CEMPolicy(
            time_step_spec,
            action_spec,
            self._target_q_network,
            actions_sampler,
            init_mean_cem,
            init_var_cem,
            info_spec=() if in_graph_bellman_update else info,
            num_samples=num_samples_cem,
            num_elites=num_elites_cem,
            num_iterations=num_iter_cem,
            emit_log_probability=emit_log_probability,
            seed=seed,
        )
        self._epsilon_greedy = schedules.follow(
            "epsilon_greedy", epsilon_greedy, train_step_counter
        )
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(self._search),
            epsilon_greedy_policy.EpsilonGreedyPolicy(
                self._search, self._epsilon_greedy, seed=seed
            ),
            actor_critic_networks.Networks(embedding, None, None, pairs),
            td,
            agent,
        )
        self._critic_networks = [self._q_network]
        self._in_graph_bellman_update = in_graph_bellman_update
        if not in_graph_bellman_update:
            self._train_sequence_length = 1
            self._as_data.convert = data_converter.AsHalfTransition(
                data_converter.DataContext(
                    self.time_step_spec,
                    self.action_spec,
                    self.collect_policy.info_spec,
                    use_half_transition=True,
                ),
                squeeze_time_dim=True,
            )
        self._set_untracked("_auxiliary_loss_fns", tuple(auxiliary_loss_fns or ()))
        self._parts = [
            self._part("td", self._td_loss, self._critic_networks, optimizer)
        ]

    @property
    def policy_q_network(self) -> network_lib.Network:
        """The target network, by which the policies act."""
        return self._target_q_network

    @property
    def enable_td3(self) -> bool:
        """Whether targets are the minimum of the delayed networks' values."""
        return self._target_q_network_delayed is not None

    def _get_target_updater(self, tau: Any = 1.0, period: Any = 1) -> _InTurn:
        targets = [target for _, target in self._target_pairs]
        # From the last to the first, so that each network gets the weights that its
        # source had before this update.
        behind = list(itertools.pairwise(targets))[::-1]
        number = self._delayed_target_update_period
        return _InTurn(
            [
                updates.make_updater(behind, 1.0, number),
                updates.make_updater(self._target_pairs[:1], tau, period),
            ]
        )

    def _td_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `L(y - Q(s, a))`, and its details."""
        data: transitions.Transitions = batch.data
        targets = data.targets(self._next_values(data, batch.seed))
        loss, details = self._regress(batch, targets)
        return loss + self._auxiliary_loss(batch), details

    def _next_values(
        self, data: transitions.Transitions, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns the values of the next states, `[B]`."""
        if not self._in_graph_bellman_update:
            return data.info["target_q"]
        reached = data.next_time_step
        action = self._search.action(reached, seed=seed).action
        networks: list[Any] = [self._target_q_network]
        if self.enable_td3:
            networks = [
                self._target_q_network_delayed,
                self._target_q_network_delayed_2,
            ]
        return losses.clipped_double_q(
            [critics.values(each, reached, action) for each in networks]
        )

    def _auxiliary_loss(self, batch: updates.Batch) -> tf.Tensor:
        """Returns the sum of the auxiliary losses, a scalar."""
        data, total = batch.data, tf.constant(0.0)
        step = policy_step.PolicyStep(data.action, (), data.info)
        transition = trajectory.Transition(data.time_step, step, data.next_time_step)
        for loss_fn in self._auxiliary_loss_fns:
            each, penalty = loss_fn(network=self._q_network, transition=transition)
            total += losses.aggregate_losses(
                each, batch.weights, regularization_loss=penalty
            ).total_loss
        return total

    def _log_values(self) -> dict[str, tf.Tensor]:
        return measures.of_exploration(epsilon=self._epsilon_greedy)


class _InTurn(tf.Module):
    """Calls several updaters of targets, one after the other."""

    def __init__(self, updaters: Sequence[common.Periodically]) -> None:
        super().__init__()
        self._updaters = list(updaters)

    def __call__(self) -> None:
        for update in self._updaters:
            update()

    def variables(self) -> list[tf.Variable]:
        """Returns the counters of calls."""
        return [v for update in self._updaters for v in update.variables()]
